"""`fishweir bench niagaracq`: section 5 of the NiagaraCQ paper on real quotes.

Compares grouped with non-grouped by query type, number of queries and number of changed rows; measures registration in
bulk and as text, and the end-to-end time through Spark. It first checks that all contestants return the same results,
then measures. Prints tables on the terminal; writes CSV, JSON and a picture to the folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, TaskID

from fishweir.papers.experiment import plot
from fishweir.papers.experiment.closing import counting_progress, finish, warn_if_missed
from fishweir.papers.experiment.figures import Outcome, about_run, pin_threads
from fishweir.papers.niagaracq import kernel, report
from fishweir.papers.niagaracq.quotes import Market, companies_document, load_market, quotes_document
from fishweir.papers.niagaracq.registration import measure_registration

NAME = "niagaracq"
REGISTERED, QUICK_REGISTERED = (10_000, 1_000_000), (200, 2_000)
SCRIPT, QUICK_SCRIPT = 100_000, 1_000
ROUNDS, QUICK_ROUNDS = 9, 2


def main(out: Path, quick: bool = False) -> None:
    """Runs the whole experiment. `quick` uses small sizes for a smoke test."""
    outcome = run(out, quick, Console(), engine=True)
    warn_if_missed(outcome.targets, Console())


def run(out: Path, quick: bool, console: Console, engine: bool, sizes: kernel.Sizes | None = None) -> Outcome:
    """Runs the experiment; with `engine` False only the kernel's part, without Spark."""
    pin_threads()
    sizes = sizes or (kernel.QUICK if quick else kernel.Sizes())
    market = load_market(sizes.symbols)
    quotes, companies = (len(d) / 1e6 for d in (quotes_document(market.today), companies_document(market.companies)))
    size = f"{len(market.today):,} symbols, quotes.xml of {quotes:.1f} MB, companies.xml of {companies:.1f} MB"
    console.print(f"Data: {market.source}; {size}", markup=False, soft_wrap=True)
    outcome = Outcome(about_run(market.source, quick))
    with counting_progress(console) as progress:
        measure_kernel(outcome, market, sizes, progress)
        outcome.write(out, NAME)
        if engine:
            measure_engine(outcome, market, quick, progress)
    finish(outcome, out, NAME, report, plot.draw, console)
    return outcome


def measure_kernel(outcome: Outcome, market: Market, sizes: kernel.Sizes, progress: Progress) -> None:
    task = progress.add_task("kernel", total=sizes.steps)

    def say(words: str) -> None:
        progress.update(task, advance=1, description=words)

    outcome.about["checked_pairs"] = kernel.check_all(market, sizes, say)
    outcome.figures += kernel.measure_queries(market, sizes, say)
    outcome.figures += kernel.measure_changes(market, sizes, say)
    progress.update(task, description="kernel measured")


def measure_engine(outcome: Outcome, market: Market, quick: bool, progress: Progress) -> None:
    """Measures registration first, then the end-to-end time on the homes that it has created."""
    from fishweir.papers.niagaracq.end_to_end import COLD, measure_end_to_end

    rounds = QUICK_ROUNDS if quick else ROUNDS
    with tempfile.TemporaryDirectory(prefix="fishweir-bench-") as folder:
        homes = {n: Path(folder) / f"home-{n}" for n in (QUICK_REGISTERED if quick else REGISTERED)}
        for n, home in homes.items():
            done = _to(progress, progress.add_task(f"registering {n:,} in bulk", total=n))
            outcome.figures.append(measure_registration("many", home, n, done))
            done(n)
        script = QUICK_SCRIPT if quick else SCRIPT
        done = _to(progress, progress.add_task(f"registering {script:,} as text", total=script))
        outcome.figures.append(measure_registration("script", Path(folder) / "script", script, done))
        done(script)
        for n, home in homes.items():
            done = _to(progress, progress.add_task(f"Spark, {n:,} queries", total=COLD + rounds))
            outcome.figures.append(measure_end_to_end(home, n, market, kernel.CHANGED, rounds, done))


def _to(progress: Progress, task: TaskID) -> Callable[[int], None]:
    return lambda count: progress.update(task, completed=count)
