"""The figures that scripts/compare-checkouts measures: `python scripts/checkout_figures.py [PREFIX ...]` serves them.

It runs with the Python of a checkout, so everything it imports exists in both versions. Requests are lines: `next`
prepares a figure, the name of a run repeats it once. The answers are lines of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

OWN, PUBLISHED, CONTROL = "own", "published", "control"
"""Fishweir's strategies; the algorithms of the papers; code that is the same in all versions."""


PREFIXES: list[str] = []
"""Prefixes of the names of the figures to measure; empty for all figures."""


@dataclass
class Figure:
    """The runs that are timed under one name. Each returns the seconds it took."""

    name: str
    runs: dict[str, Callable[[], float]]
    answers: Any
    group: str = OWN


def timed(run: Callable[[], Any]) -> Callable[[], float]:
    def once() -> float:
        began = time.process_time()
        found = run()
        seconds = time.process_time() - began
        del found
        return seconds

    return once


def cold(run: Callable[[], Any]) -> Callable[[], float]:
    """Times a run without the caches of the algebra and the languages, as if it were the first."""
    once = timed(run)

    def once_cold() -> float:
        clear_caches()
        return once()

    return once_cold


def clear_caches() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("fishweir.algebra."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
            for cache in ("_RECENT", "_LATELY"):  # its name now, and in earlier checkouts
                getattr(module, cache, {}).clear()
    script: Any = sys.modules.get("fishweir.languages.script")
    if script is not None:
        script._CACHE.__init__()


def niagaracq() -> Iterator[Figure]:
    from fishweir.papers.experiment.contestants import Grouped, NonGrouped
    from fishweir.papers.niagaracq.quotes import load_market, parsed_rows
    from fishweir.papers.niagaracq.registration import register
    from fishweir.papers.niagaracq.workloads import CASES, all_fire, make_workload

    market = load_market()
    changed = market.changed(1_000)
    rows = parsed_rows(changed)
    for kind in ("Type 1", "Type 2", "Type 2b", "Type 3", "Type 1+3"):
        for case in CASES:
            for n in (1_000, 10_000):
                workload = make_workload(kind, case, n, market, changed)
                yield _grouped(f"{kind}, {case}, N={n}", Grouped, workload, rows)
    for count in (100, 1_000, 2_000):
        workload = all_fire(2_000, market.changed(100))
        yield _grouped(f"experiment 2, C={count}", Grouped, workload, parsed_rows(market.changed(count)))
    alone = NonGrouped(make_workload("Type 3", "F=N", 1_000, market, changed))
    yield Figure("non-grouped", {"match": timed(lambda: alone.match(rows[:100]))}, alone.match(rows).pairs, CONTROL)
    with tempfile.TemporaryDirectory() as folder:
        homes = iter(range(1_000_000))
        for kind in ("many", "script"):
            home = cold(lambda kind=kind: register(kind, Path(folder) / str(next(homes)), 10_000))
            yield Figure(f"registration, {kind}, N=10000", {"register": home}, None)


def _grouped(name: str, make: Any, workload: Any, rows: Any) -> Figure:
    grouped = make(workload)
    values = grouped.extract(rows)
    found = grouped.counts(grouped.match(values))
    runs = {
        "plan": cold(lambda: make(workload)),
        "extract": timed(lambda: grouped.extract(rows)),
        "match": timed(lambda: grouped.match(values)),
    }
    return Figure(name, runs, [found.fired, found.pairs])


def paths() -> Iterator[Figure]:
    from fishweir.algebra.documents import parse_document
    from fishweir.papers.paths.contestants import FAST, Alone
    from fishweir.papers.paths.documents import PREFIXES, load_sets
    from fishweir.papers.paths.queries import KINDS, Draw

    for documents in load_sets(False):
        roots = [parse_document(body) for body in documents.bodies][:60]
        for kind in KINDS:
            texts = list(islice(Draw(roots, PREFIXES, kind), 10_000))
            for n in (10, 100, 1_000, 10_000):
                some = texts[:n]
                fast = FAST[kind](some, PREFIXES)
                found = fast.match(roots)
                runs = {
                    "register": cold(lambda make=FAST[kind], some=some: make(some, PREFIXES)),
                    "match": timed(lambda fast=fast, roots=roots: fast.match(roots)),
                    "expand": timed(lambda fast=fast, found=found: fast.expand(found)),
                }
                yield Figure(f"{documents.name}, {kind}, N={n}", runs, sum(fast.lengths(found).values()))
        few = list(dict.fromkeys(texts[:100]))
        alone = Alone(few, PREFIXES)
        lengths = sum(alone.match(roots, few)[0].values())
        once = timed(lambda alone=alone, few=few, roots=roots: alone.match(roots[:10], few))
        yield Figure(f"{documents.name}, lxml", {"match": once}, lengths, CONTROL)


def roses() -> Iterator[Figure]:
    import numpy as np

    from fishweir.evaluate.select.factorization.cost import independent, plan_cost
    from fishweir.papers.roses.experiment import contestants, matching, plans
    from fishweir.papers.roses.experiment.predicates import cnf_predicates, keyword_predicates
    from fishweir.papers.roses.experiment.work import keyword_filters, load_items

    items = load_items(20_000)
    statistics = matching.counted(items)
    shares = plans.frequencies(items)
    works = [
        (f"figure 7, N={n}", keyword_predicates(n, shares, np.random.default_rng(5)), independent(shares))
        for n in (10, 30, 100, 300, 1_000, 10_000)
    ]
    for length in (1, 3, 5):
        made, chances = cnf_predicates(300, shares, np.random.default_rng(5), (length, length), (1, 5))
        works.append((f"figure 8, {length} conjuncts", made, independent(chances)))
    for name, predicates, selectivity in works:
        for algorithm in plans.ALGORITHMS:
            if algorithm == "VCA with VCB" or len(predicates) <= 30:
                make = plans.ALGORITHMS[algorithm]
                run = timed(lambda make=make, p=predicates, s=selectivity: make(p, s))
                cost = round(plan_cost(make(predicates, selectivity), selectivity), 9)
                group = OWN if algorithm == "VCA with VCB" else PUBLISHED
                yield Figure(f"{name}, {algorithm}", {"plan": run}, cost, group)
    texts = items.texts[:1_000]
    for n in (1_000, 10_000, 100_000):
        filters = keyword_filters(items, n)
        for contestant, group in (("Shared", OWN), ("Unshared", PUBLISHED), ("RarestWord", CONTROL)):
            make = getattr(contestants, contestant)
            built = make(filters, statistics)
            tokens = built.tokenize(texts)
            runs = {"match": timed(lambda built=built, tokens=tokens: built.match(tokens))}
            if contestant == "Shared":
                runs["plan"] = cold(lambda make=make, filters=filters: make(filters, statistics))
                runs["tokenize"] = timed(lambda built=built: built.tokenize(texts))
            yield Figure(f"matching, {contestant}, N={n}", runs, len(matching.pair_set(built, texts)), group)


def mmqjp() -> Iterator[Figure]:
    from fishweir.papers.mmqjp.experiment import fast as module
    from fishweir.papers.mmqjp.experiment.work import load_items, rss_queries, three_level, two_level, two_level_stream
    from fishweir.papers.mmqjp.sequential import Sequential

    module.time = SimpleNamespace(perf_counter=time.process_time)  # it separates the join from the rest by wall time
    works = [(f"figure 8, N={n}", lambda n=n: two_level(n)) for n in (10, 100, 1_000, 10_000)]
    works += [
        (f"figure 9, {leaves} leaves", lambda leaves=leaves: two_level(1_000, leaves)) for leaves in (2, 4, 8, 12)
    ]
    works += [(f"figure 10, Zipf {zipf}", lambda zipf=zipf: two_level(1_000, zipf=zipf)) for zipf in (0.0, 1.6)]
    works += [(f"figure 11, N={n}", lambda n=n: three_level(n)) for n in (10, 100, 1_000, 10_000)]
    works += [(f"figure 12, {joins} joins", lambda joins=joins: three_level(1_000, joins)) for joins in (2, 3, 5)]
    works += [(f"figure 13, Zipf {zipf}", lambda zipf=zipf: three_level(1_000, zipf=zipf)) for zipf in (0.0, 1.6)]
    for name, make in works:
        if not is_selected(f"mmqjp: {name}"):
            continue
        work = make()
        fast = _registered(module.Fast(), work.queries)
        fast.process([work.first])
        runs = {
            "register": cold(lambda q=work.queries: _registered(module.Fast(), q)),
            "whole": timed(lambda fast=fast, work=work: fast.process([work.second], False)),
            "join": lambda fast=fast, work=work: _joined(fast, [[work.second]], False),
            "first time": lambda work=work: _first(module.Fast(), work),
        }
        yield Figure(name, runs, fast.process([work.second], False).tolist())
    streams: list[Any] = []
    if is_selected("mmqjp: figure 16"):
        streams += [(f"figure 16, N={n}", rss_queries(n), load_items(4_000).arrivals) for n in (10, 1_000)]
    if is_selected("mmqjp: stream"):
        streams.append(("stream, N=1000", two_level(1_000).queries, two_level_stream(2_000).arrivals))
    for name, queries, arrivals in streams:
        batches = [arrivals[i : i + 1_000] for i in range(0, len(arrivals), 1_000)]
        fast = _registered(module.Fast(), queries)
        answers = [fast.process(some).tolist() for some in batches]
        again = lambda queries=queries, batches=batches: _joined(_registered(module.Fast(), queries), batches, True)  # noqa: E731
        yield Figure(name, {"join": again}, answers)
    work = two_level(200)
    alone = Sequential()
    alone.register(work.queries)
    alone.count([work.first], True)
    counted = alone.count([work.second], False).tolist()
    yield Figure(
        "figure 8, Sequential", {"whole": timed(lambda: alone.count([work.second], False))}, counted, PUBLISHED
    )


def _registered(fast: Any, queries: Any) -> Any:
    fast.register(queries)
    return fast


def _joined(fast: Any, batches: Any, keep: bool) -> float:
    before = fast.seconds["join"]
    for some in batches:
        fast.process(some, keep)
    return fast.seconds["join"] - before


def _first(fast: Any, work: Any) -> float:
    clear_caches()
    _registered(fast, work.queries).process([work.first])
    return _joined(fast, [[work.second]], False)


def spatialjoin() -> Iterator[Figure]:
    from fishweir.papers.spatialjoin.experiment import joins
    from fishweir.papers.spatialjoin.experiment.contestants import Chosen, Strategy
    from fishweir.papers.spatialjoin.experiment.outsiders import NumbaScan
    from fishweir.papers.spatialjoin.experiment.work import (
        load_climate,
        narrow_climate_work,
        narrow_work,
        paper_work,
        skewed_tuples,
        uniform_tuples,
    )

    climate = load_climate()
    works = [
        (f"figure 15, {n} x {d}", paper_work(n, d, 1.0, uniform_tuples(500, d)))
        for d in (4, 8)
        for n in (10_000, 25_000, 50_000)
    ]
    works += [
        (f"figure 16, Rpred {share}", paper_work(50_000, 8, share, uniform_tuples(200, 8)))
        for share in (0.25, 0.5, 0.75)
    ]
    works += [
        (f"figure 17, Rskew {skew}", paper_work(50_000, 4, 1.0, skewed_tuples(200, 4, skew)))
        for skew in (0.25, 0.5, 1.0)
    ]
    works.append(("figure 17, climate", paper_work(50_000, 4, 1.0, climate.sample(200, 4), climate.source)))
    works.append(("narrow, uniform", narrow_work(100_000, 4, uniform_tuples(2_000, 4))))
    works.append(("narrow, climate", narrow_climate_work(100_000, climate, 2_000)))
    for name, work in works:
        chosen = Chosen(work)
        pairs = len(chosen.pairs(chosen.match(work.tuples))[0])
        runs = {
            "register": cold(lambda work=work: Chosen(work)),
            "match": timed(lambda chosen=chosen, work=work: chosen.match(work.tuples)),
        }
        yield Figure(name, runs, pairs)
    work = works[0][1]
    for strategy in ("sj-batch", "sj-immediate", "ibs"):
        made = Strategy(work, strategy)
        few = work.tuples[:50]
        run = timed(lambda made=made, few=few: made.match(few))
        yield Figure(f"figure 15, {strategy}", {"match": run}, len(made.pairs(made.match(few))[0]), PUBLISHED)
    scan = NumbaScan(work)
    run = timed(lambda: scan.match(work.tuples[:100]))
    yield Figure("scan", {"match": run}, len(scan.pairs(scan.match(work.tuples))[0]), CONTROL)
    for n in (200, 1_000):
        for window in (100, 1_000, 10_000):
            made = joins.join_work(n, window, 4, 400)
            running = joins.Running(joins.FISHWEIR, made)
            answers = running.counts(5).tolist()
            runs = {
                "register": cold(lambda made=made: joins.CONTESTANTS[joins.FISHWEIR](made.queries)),
                "batch": lambda running=running: running.once(20)[0],
            }
            yield Figure(f"figure 18, N={n}, windows of {window}", runs, answers)


EXPERIMENTS = {e.__name__: e for e in (niagaracq, paths, roses, mmqjp, spatialjoin)}


def serve(only: list[str]) -> None:
    """The process of one checkout: `next` prepares a figure, the name of a run repeats it once."""
    from fishweir.papers.experiment.figures import pin_threads

    pin_threads()
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    PREFIXES.extend(only)
    figures = _figures(only)
    figure: Figure | None = None
    for line in sys.stdin:
        asked = line.strip()
        if asked == "next":
            gc.enable()
            figure = next(figures, None)
            gc.collect()
            gc.disable()
            said: Any = figure and [figure.name, figure.group, list(figure.runs), json.dumps(figure.answers)]
        else:
            assert figure is not None
            said = figure.runs[asked]()
        print(json.dumps(said), file=answer, flush=True)


def is_selected(*names: str) -> bool:
    """Whether any figure with one of these names or prefixes is to be measured."""
    return not PREFIXES or any(name.startswith(one) or one.startswith(name) for name in names for one in PREFIXES)


def _figures(only: list[str]) -> Iterator[Figure]:
    for name, experiment in EXPERIMENTS.items():
        if not only or any(one.split(":")[0] == name for one in only):
            for figure in experiment():
                figure.name = f"{name}: {figure.name}"
                if is_selected(figure.name):
                    yield figure


if __name__ == "__main__":
    serve(sys.argv[1:])
