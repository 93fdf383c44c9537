"""Measures the end-to-end time: documents are published to a stream, matched by the Spark job, and results committed.

In: homes in which N queries are registered already. Out: the seconds of a warm micro-batch of 1,000 changed rows, as
recorded in the commit. They cover everything from planning to the results on disk.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Figure
from fishweir.papers.niagaracq.quotes import Market, quote_body
from fishweir.papers.niagaracq.registration import CASE, TYPE
from fishweir.papers.niagaracq.workloads import FIRED, STREAM
from fishweir.pipeline.commits import Commit

COLD = 3
"""Number of first rounds that are not counted: they build the plan, start workers and map the segments."""
PATIENCE = 600.0


def measure_end_to_end(home: Path, n: int, market: Market, c: int, rounds: int, done: Callable[[int], None]) -> Figure:
    """Publishes rounds of the same changed rows, each after the previous one has been committed."""
    bodies = [b"<Quotes>" + quote_body(quote) + b"</Quotes>" for quote in market.changed(c)]
    with Weir(home) as weir:
        commits = _run(weir, bodies, COLD + rounds, done)
        fired = len({result.query for result in weir.results()})
    if fired != min(FIRED, n):
        raise AssertionError(f"{fired} queries fired, not {min(FIRED, n)}")
    warm = [commit.seconds for commit in commits[COLD:]]
    return Figure(
        "end to end",
        TYPE,
        CASE,
        n,
        "Spark micro-batch",
        statistics.median(warm),
        c,
        fired=fired,
        result_rows=commits[-1].matches,
        repetitions=len(warm),
        note=f"first micro-batch, with planning: {commits[0].seconds:.2f} s",
    )


def _run(weir: Weir, bodies: list[bytes], rounds: int, done: Callable[[int], None]) -> list[Commit]:
    """The commits of the rounds. The job runs in the background, and its failure is raised here."""
    failed: list[BaseException] = []

    def job() -> None:
        try:
            weir.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=job, daemon=True)
    thread.start()
    for number in range(1, rounds + 1):
        weir.publish(STREAM, bodies)
        _wait(weir, number * len(bodies), failed)
        done(number)
    weir.stop()
    thread.join(60)
    return [commit for commit in weir.table.commits() if commit.documents]


def _wait(weir: Weir, documents: int, failed: list[BaseException]) -> None:
    ends = time.monotonic() + PATIENCE
    while sum(commit.documents for commit in weir.table.commits()) < documents:
        if failed:
            raise failed[0]
        if time.monotonic() > ends:
            raise TimeoutError(f"{documents:,} documents were not evaluated within {PATIENCE:.0f} s")
        time.sleep(0.02)
