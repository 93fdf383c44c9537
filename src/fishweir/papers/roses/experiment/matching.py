"""Matches real items with 1,000 to 1,000,000 keyword filters: all contestants on the same batch.

The (item, filter) pairs of all contestants are compared first. Then tokenizing and matching are timed separately, in
processor time, the least of several repetitions. A contestant that would take too long gets fewer items, and the figure
says so.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from fishweir.evaluate.statistics import Statistics, count_values, path_key
from fishweir.evaluate.witnesses.path_tables import PathTable
from fishweir.papers.experiment.contestants import Disagreement
from fishweir.papers.roses.experiment.contestants import AhoCorasick, Naive, RarestWord, Shared, Unshared
from fishweir.papers.roses.experiment.report import RosesFigure
from fishweir.papers.roses.experiment.work import SOURCE, Items, keyword_filters

Say = Callable[[str], None]
SIZES, QUICK_SIZES = (1_000, 10_000, 100_000, 1_000_000), (100, 1_000)
BATCH, QUICK_BATCH = 1_000, 100
NAIVE_PAIRS = 20_000_000
"""Number of filters times items above which the naive contestant gets fewer items."""
REPETITIONS = 5
CONTESTANTS: tuple[Any, ...] = (Shared, Unshared, RarestWord, AhoCorasick, Naive)


def measure_matching(items: Items, quick: bool, say: Say) -> Iterator[RosesFigure]:
    texts = items.texts[: QUICK_BATCH if quick else BATCH]
    statistics = counted(items)
    for n in QUICK_SIZES if quick else SIZES:
        filters = keyword_filters(items, n)
        expected: set[tuple[int, int]] | None = None
        for contestant in CONTESTANTS:
            say(f"matching: {contestant.name}, N = {n:,}")
            some = texts[: max(1, NAIVE_PAIRS // n)] if contestant is Naive else texts
            gc.collect()
            began = process_time()
            built = contestant(filters, statistics)
            register = None if contestant is Unshared else process_time() - began  # it is derived from the other one
            pairs = pair_set(built, some)
            if expected is None:
                expected = pairs
            agree(contestant.name, pairs, {pair for pair in expected if pair[0] < len(some)})
            tokenize, match = least(built, some)
            note = "" if len(some) == len(texts) else f"on {len(some):,} of {len(texts):,} items"
            yield RosesFigure(
                "matching",
                contestant.name,
                n,
                (tokenize + match) / len(some),
                register_seconds=register,
                tokenize_seconds=tokenize / len(some),
                match_seconds=match / len(some),
                pairs=len(pairs) / len(some),
                note=note,
            )
            del built


def agree(name: str, found: set[tuple[int, int]], expected: set[tuple[int, int]]) -> None:
    if found != expected:
        item, number = min(found ^ expected)
        raise Disagreement(f"{name} and the shared plan differ on item {item} and filter {number}")


def pair_set(built: Any, texts: Sequence[str]) -> set[tuple[int, int]]:
    items, numbers = built.pairs(built.match(built.tokenize(texts)))
    return set(zip(items.tolist(), numbers.tolist(), strict=True))


def least(built: Any, texts: Sequence[str]) -> tuple[float, float]:
    """Seconds of tokenizing and of matching in the fastest repetition."""
    gc.collect()
    gc.disable()
    try:
        best, spent = (np.inf, np.inf), 0.0
        for _ in range(REPETITIONS):
            began = process_time()
            tokens = built.tokenize(texts)
            middle = process_time()
            built.match(tokens)
            end = process_time()
            best = min(best, (middle - began, end - middle), key=sum)
            spent += end - began
            if spent > 20:
                break
    finally:
        gc.enable()
    return best


def counted(items: Items) -> Statistics:
    """The statistics that workers would have counted on these items."""
    nodes = np.zeros((len(items.texts), 1), np.int64)
    values = PathTable(np.arange(len(items.texts)), nodes, pa.array(items.texts, pa.large_string()))
    return {path_key(SOURCE, "item"): count_values(values, words=True)}
