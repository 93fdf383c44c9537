"""Which tables become boxes, and the size of the blocks of their matches."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.nodes import CreateQuery, Source
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, planned_segment
from fishweir.evaluate.select.constant_tables import Table
from fishweir.evaluate.select.region_rule import SMALL, choose_regions, kernel_detail
from fishweir.evaluate.select.regions import RegionSet
from fishweir.evaluate.select.strategies import ByRegions
from fishweir.evaluate.statistics import Statistics, count_values, path_key
from fishweir.evaluate.witnesses.path_tables import PathTable, tuple_tables
from fishweir.languages.script import parse_script
from fishweir.papers.spatialjoin import regions as papers_kernels

STREAM = "create stream R (x double, y double, name string);"
SOURCE = Source("R")


def tables(*wheres: str) -> tuple[Table, ...]:
    text = STREAM + "".join(f"create query q{i} as select * from R where {w};" for i, w in enumerate(wheres))
    created = [q for q in parse_script(text) if isinstance(q, CreateQuery)]
    rows = [
        (number, normal.template, constants_of(normal, query.constants))
        for number, query in enumerate(created)
        for normal in to_normals(query.shape)
    ]
    return build_groups(rows, {})


def region_sets(built: Sequence[Table], statistics: Statistics, kernel: str | None = None) -> list[RegionSet]:
    chosen = choose_regions(dict(enumerate(built)), statistics, kernel)
    return [RegionSet(tuple(built[i] for i in region_set[0]), *region_set) for region_set in chosen]


def ranges(count: int = SMALL) -> list[str]:
    return [f"x > {i} and x < {i + 100} and y > {i}" for i in range(count)]


def counted(texts: list[str]) -> PathTable:
    return PathTable(np.arange(len(texts)), np.zeros((len(texts), 2), np.int64), pa.array(texts, pa.large_string()))


def statistics_of(**columns: list[str]) -> Statistics:
    return {path_key(SOURCE, name): count_values(counted(texts)) for name, texts in columns.items()}


def test_many_queries_on_several_attributes_are_boxes() -> None:
    (region_set,) = region_sets(tables(*ranges()), {})
    assert region_set.strategy in ("grid", "packed")


def test_few_queries_keep_their_anchor() -> None:
    assert region_sets(tables(*ranges(SMALL - 1)), {}) == []


def test_queries_on_one_attribute_keep_their_anchor() -> None:
    assert region_sets(tables(*(f"x > {i} and x < {i + 1}" for i in range(SMALL))), {}) == []


def test_equality_with_many_constants_keeps_its_anchor() -> None:
    assert region_sets(tables(*(f"name = 'n{i}' and x > {i}" for i in range(SMALL))), {}) == []
    (region_set,) = region_sets(tables(*(f"name = 'n{i % 2}' and x > {i}" for i in range(SMALL))), {})
    assert region_set.indexes == (0,)


def test_statistics_overturn_the_operators() -> None:
    """A range that contains few values is a good anchor; equality with the most frequent value is a bad one."""
    built = tables(*ranges())
    far = statistics_of(x=[str(-i) for i in range(1000)], y=[str(-i) for i in range(1000)])
    assert region_sets(built, {}) != []
    assert region_sets(built, far) == []
    names = tables(*(f"name = 'n{i}' and x > {i}" for i in range(SMALL)))
    assert region_sets(names, statistics_of(name=["n1"] * 500, x=["0"] * 500)) != []


def test_shapes_of_one_stream_form_one_pool() -> None:
    """Each of them alone is too small; the alternatives of a query count as queries."""
    third = SMALL // 3 + 1
    wheres = [f"x > {i} and y < {i}" for i in range(third)]
    wheres += [f"x >= {i} and name < 'n{i}' and x > y" for i in range(third)]
    wheres += [f"(y = {i} and x < {i}) or (x > {i} and y < {i})" for i in range(third)]
    built = tables(*wheres)
    (region_set,) = region_sets(built, {})
    assert region_set.indexes == tuple(range(len(built)))
    assert len(region_set.attributes) == 3


def test_cluster_size_of_the_papers_strategies() -> None:
    built = tables(*ranges())
    details = {s: kernel_detail(region_sets(built, {}, s)[0], {}) for s in ("grid", *papers_kernels.NAMES)}
    assert details["grid"] == details["ibs"] == ""
    assert details["sj-immediate"] == "data clusters of 1 (Ndc)"
    assert re.fullmatch(r"data clusters of [1-9]\d* \(Ndc\)", details["sj-batch"])


@pytest.mark.parametrize("strategy", ["grid", "packed", "sj-batch"])
def test_blocks_are_bounded_by_their_pairs(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples that satisfy nothing first, then tuples that satisfy all."""
    monkeypatch.setattr("fishweir.evaluate.select.region_match.PAIRS", 2000)
    built = tables(*(f"x > {i} and y > {i}" for i in range(SMALL)))
    segment = planned_segment("1", built, {}, [ByRegions(kernel=strategy)])
    plan = plan_of([segment], [SOURCE])
    column = pa.array([0.0] * 300 + [1000.0] * 100)
    found = list(plan.match(tuple_tables("R", {"x": column, "y": column}, plan.paths)))
    sizes = [len(matches.members) for _, _, matches in found]
    assert sum(sizes) == 100 * SMALL
    assert max(sizes) <= 2000 + SMALL + 64
    documents = np.concatenate([matches.documents for _, _, matches in found])
    assert sorted(documents.tolist()) == list(range(300, 400))
