"""`fishweir bench paths`: all path queries together against lxml's XPath, one path at a time.

In: XMark and CDA documents, and path queries drawn from them as YFilter's generator does (queries.py), 10 to
100,000; plain queries and queries with predicates separately. All contestants are first checked to return the same
nodes. They are then measured on one thread: registration, parsing and matching separately, in processor seconds, which
other processes on the machine affect less than wall time. Out: a table, CSV, JSON and a picture.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import process_time as clock

from rich.console import Console
from rich.progress import Progress

from fishweir.algebra.documents import Element, parse_document
from fishweir.papers.experiment.closing import counting_progress, finish, warn_if_missed
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.experiment.figures import Outcome, about_run, pin_threads, time_stages
from fishweir.papers.paths import report as paths_report
from fishweir.papers.paths.contestants import FAST, Alone, Fast, Shared, check_agreement
from fishweir.papers.paths.documents import PREFIXES, DocumentSet, load_sets
from fishweir.papers.paths.queries import KINDS, Draw
from fishweir.papers.paths.report import PathFigure

NAME = "paths"
SIZES, QUICK_SIZES = (10, 100, 1_000, 10_000, 100_000), (10, 100)
CHECKED, QUICK_CHECKED = 300, 60
CHECKED_DOCUMENTS = 25
TOO_LONG = 40.0
"""If lxml would take more seconds, it runs on a sample that takes a fraction of this, and the figure says so."""
SAMPLE, FEWEST = 10.0, 200
EXPANDED_PAIRS = 50_000_000

Say = Callable[[str], None]


def main(out: Path, quick: bool = False) -> None:
    """Runs the whole experiment. `quick` uses small sizes for a smoke test."""
    outcome = run(out, quick, Console())
    warn_if_missed(outcome.targets, Console())


def run(out: Path, quick: bool, console: Console) -> Outcome:
    pin_threads()
    sets = load_sets(quick)
    for documents in sets:
        count = f"{len(documents.bodies):,} documents, {documents.size / 1e6:.2f} MB"
        console.print(f"{documents.name}: {documents.source}; {count}", markup=False, soft_wrap=True)
    outcome = Outcome(about_run("; ".join(f"{d.name}: {d.source}" for d in sets), quick))
    outcome.about["checked_pairs"] = 0
    sizes = QUICK_SIZES if quick else SIZES
    with counting_progress(console) as progress:
        task = progress.add_task("paths", total=len(sets) * len(KINDS) * (len(sizes) + 1))
        for documents in sets:
            for kind in KINDS:
                say = _advance(progress, task)
                measure(outcome, documents, kind, sizes, QUICK_CHECKED if quick else CHECKED, say)
                outcome.write(out, NAME)
    finish(outcome, out, NAME, paths_report, paths_report.draw, console)
    return outcome


def measure(outcome: Outcome, documents: DocumentSet, kind: str, sizes: Sequence[int], checked: int, say: Say) -> None:
    """Measures one set of documents and one kind of queries. The workload of size n has the first n queries of one
    sequence."""
    roots = [parse_document(body) for body in documents.bodies]
    texts = list(islice(Draw(roots, PREFIXES, kind), max(sizes)))
    say(f"checking {documents.name}, {kind}")
    few = roots[:: -(-len(roots) // CHECKED_DOCUMENTS)]
    label = f"{documents.name}, {kind}"
    outcome.about["checked_pairs"] += check_agreement(texts[:checked], few, PREFIXES, label, (FAST[kind], Alone))
    for n in sizes:
        say(f"{documents.name}, {kind}, N={n:,}")
        outcome.figures += compare(documents, roots, kind, texts[:n])


def compare(
    documents: DocumentSet, roots: Sequence[Element], kind: str, texts: Sequence[str]
) -> tuple[PathFigure, PathFigure]:
    """Measures both contestants on the same texts and documents. The ratios are in Fishweir's figure."""
    start = clock()
    fast = FAST[kind](texts, PREFIXES)
    registered = clock()
    fast.match(roots)
    first = clock() - registered
    timed = time_stages(_parsed, fast.match, documents.bodies, most=15, clock=clock)
    lengths = fast.lengths(timed.found)
    pairs = sum(lengths.values())
    expanded = None
    if pairs <= EXPANDED_PAIRS:
        again = clock()
        fast.expand(timed.found)
        expanded = clock() - again
    distinct = fast.distinct()
    compiling = clock()
    alone = Alone(distinct, PREFIXES)
    compiled = clock() - compiling
    slow = measure_alone(alone, fast, roots, f"{documents.name}, {kind}, N={len(texts):,}")
    whole = timed.extract + slow.seconds
    figure = PathFigure(
        NAME,
        documents.name,
        kind,
        len(texts),
        Shared.name,
        timed.seconds,
        len(roots),
        timed.extract,
        timed.match,
        len(distinct) - sum(not lengths[text] for text in distinct),
        pairs,
        ratio=whole / timed.seconds,
        ratio_match=slow.seconds / timed.match,
        repetitions=timed.repetitions,
        distinct=len(distinct),
        register_seconds=registered - start,
        first_seconds=first,
        expand_seconds=expanded,
        ratio_trimmed=(timed.extract + slow.trimmed) / timed.seconds,
    )
    other = PathFigure(
        NAME,
        documents.name,
        kind,
        len(texts),
        Alone.name,
        whole,
        len(roots),
        timed.extract,
        slow.seconds,
        note=slow.note,
        distinct=len(alone.compiled),
        register_seconds=compiled,
    )
    return figure, other


def _parsed(bodies: Sequence[bytes]) -> list[Element]:
    return [parse_document(body) for body in bodies]


@dataclass(frozen=True)
class LxmlTime:
    """The time of all paths on all documents, with and without the slowest hundredth of them; a note if it is
    extrapolated from a sample."""

    seconds: float
    trimmed: float
    note: str = ""


def measure_alone(
    alone: Alone, fast: Fast, roots: Sequence[Element], label: str, most: float = TOO_LONG, sample: float = SAMPLE
) -> LxmlTime:
    """Measures all paths if that takes less than `most` seconds; else a sample of about `sample` seconds. Everything
    that was run is compared with Fishweir's results."""
    draw = random.Random(5)
    texts = list(alone.compiled)
    few_texts = draw.sample(texts, min(len(texts), 100))
    few_roots = draw.sample(list(roots), min(len(roots), 10))
    factor = len(texts) / len(few_texts) * len(roots) / len(few_roots)
    expected = factor * sum(_run(alone, fast, few_roots, few_texts, label))
    if expected <= most:
        return _lxml_time(_run(alone, fast, roots, texts, label), 1.0)
    count = max(1, min(len(roots), int(len(roots) * sample / expected)))
    few_roots = draw.sample(list(roots), count)
    share = min(1.0, sample / (expected * count / len(roots)))
    few_texts = draw.sample(texts, max(1, min(len(texts), FEWEST), int(share * len(texts)))) if share < 0.5 else texts
    of_texts = f" and {len(few_texts):,} of {len(texts):,} paths" if len(few_texts) < len(texts) else ""
    note = f"extrapolated from {len(few_roots):,} of {len(roots):,} documents{of_texts}"
    factor = len(texts) / len(few_texts) * len(roots) / len(few_roots)
    return _lxml_time(_run(alone, fast, few_roots, few_texts, label), factor, note)


def _lxml_time(seconds: list[float], factor: float, note: str = "") -> LxmlTime:
    kept = sorted(seconds)[: max(1, len(seconds) - -(-len(seconds) // 100))]
    return LxmlTime(factor * sum(seconds), factor * sum(kept) * len(seconds) / len(kept), note)


def _run(alone: Alone, fast: Fast, roots: Sequence[Element], texts: Sequence[str], label: str) -> list[float]:
    """The time of each path on some documents."""
    found, seconds = alone.match(roots, texts)
    own = fast.lengths(fast.match(roots))
    for text, length in found.items():
        if own[text] != length:
            raise Disagreement(f"{label}: {text} finds {own[text]:,} nodes together with others, {length:,} alone")
    return seconds


def _advance(progress: Progress, task: object) -> Say:
    return lambda words: progress.update(task, advance=1, description=words)  # type: ignore[arg-type]
