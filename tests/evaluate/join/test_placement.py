"""Selections below or above the join: the cost model's choice; tables of one kind are one, regardless of the
segment."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.evaluate.join.join_tables import build_join
from fishweir.evaluate.join.kind import JoinKind
from fishweir.evaluate.join.placement import costs, is_better_above, is_movable
from fishweir.evaluate.join.rows import pair_regions
from fishweir.evaluate.statistics import PathStatistics
from fishweir.languages.script import parse_script
from tests.evaluate.join.runs_support import expected, joined, parsed


def table_of(where: str, constants: int, statistics):
    """Queries that differ in one constant, as one table."""
    text = f"select * from R [range 5], S [range 5] where R.a = S.b and {where};"
    statements = parse_script("".join(text.format(i) for i in range(constants)))
    (template,) = {normal.template for s in statements for normal in to_normals(s.shape)}
    rows = [constants_of(normal, s.constants) for s in statements for normal in to_normals(s.shape)]
    return build_join(template, range(len(rows)), rows, statistics)


def counted(distinct: int, count: int = 10_000) -> PathStatistics:
    hashes = tuple(sorted(random.Random(5).randrange(2**64 * 256 // max(distinct, 257)) for _ in range(256)))
    return PathStatistics(count, hashes[: min(distinct, 256)], tuple(str(i) for i in range(0, 1000, 10)))


def statistics(distinct: int, constant: int = 1000):
    keys = {"R\ta": distinct, "S\tb": distinct, "R\tk": constant, "S\tk": constant}
    return {key: counted(many) for key, many in keys.items()}


def test_a_selective_join_of_many_queries_comes_first():
    assert table_of("R.k > {}", 500, statistics(distinct=100_000)).above


def test_selective_constants_come_first():
    assert not table_of("R.k = {}", 5, statistics(distinct=10)).above


def test_without_statistics_one_partner_per_document_is_assumed():
    """Long lists are not kept for one pair; short ones are."""
    assert table_of("R.k > {}", 500, {}).above
    assert not table_of("R.k = {}", 5, {}).above


def test_joins_that_leave_many_pairs_come_last():
    text = "select * from R [range 5], S [range 5] where R.a < S.b and R.k > {};"
    statements = parse_script("".join(text.format(i) for i in range(500)))
    (template,) = {normal.template for s in statements for normal in to_normals(s.shape)}
    rows = [constants_of(normal, s.constants) for s in statements for normal in to_normals(s.shape)]
    for known in ({}, statistics(distinct=100_000)):
        assert not build_join(template, range(len(rows)), rows, known).above


def test_more_pairs_favour_placement_below():
    few, many = (
        costs(t.template, t.anchor, t.columns, known)
        for known in (statistics(100_000), statistics(2))
        for t in [table_of("R.k = {}", 20, known)]
    )
    assert few.above < few.below
    assert many.below < many.above


def test_texts_in_order_and_patterns_stay_below():
    for where in ("R.k > 'x{}'", "R.k like '{}%'", "R.k is null and S.k > {}"):
        table = table_of(where, 300, statistics(100_000))
        assert not is_movable(table.template)
        assert not is_better_above(table.template, table.anchor, table.columns, statistics(100_000))


def test_written_and_read():
    table = table_of("R.k > {}", 500, statistics(distinct=100_000))
    again = JoinKind().read(table.header(), table.arrays())
    assert again.above
    assert again.keys == table.keys


def test_queries_of_one_template_in_two_segments_find_no_pair_twice():
    """Both store rows of the same class, and each finds those of the other."""
    text = "select * from R [range 5], S [range 5] where R.a = S.b{};" * 2
    for where in ("", " and R.k > 1", " and R.k > 1 and S.k > 1"):
        statements = parse_script(text.format(where, where))
        some = [(s.shape, s.constants) for s in statements]
        docs = parsed([(s, "<t><a>1</a><b>1</b><k>2</k></t>", float(i)) for i, s in enumerate("RSRS")])
        for above in (False, True):
            assert joined(some, [docs[:2], docs[2:]], above=above, apart=True) == expected(some, docs)
        assert np.unique([row[0] for row in expected(some, docs)]).tolist() == [0, 1]


def many_queries(where: str, count: int):
    """Queries of one shape with drawn constants and windows."""
    rng = random.Random(3)
    text = f"select * from R [range {{}}], S [range {{}}] where R.a = S.b and {where};"
    drawn = ((rng.randrange(4), rng.randrange(4), *rng.choices(range(6), k=3)) for _ in range(count))
    return [(s.shape, s.constants) for s in parse_script("".join(text.format(*some) for some in drawn))]


@pytest.mark.parametrize(
    "where",
    [
        "R.k > {} and S.k <= {}",
        "R.k = {} and S.k != {}",
        "R.k = 'x{}' and S.k >= {}",
        "R.k != 'x{}'",
        "R.k > {} and R.c < {}",
    ],
)
def test_regions_over_pairs_equal_the_oracle(where, monkeypatch):
    """A few pairs at a time, so that blocks of pairs end between two results and not within one."""
    monkeypatch.setattr(pair_regions, "FIRST", 2)
    monkeypatch.setattr(pair_regions, "FOUND_AT_ONCE", 20)
    rng, some = random.Random(4), many_queries(where, 60)
    values = ["0", "1", "2.5", "4", "x1", "x3", ""]
    text = "<t><a>{}</a><b>{}</b><k>{}</k><c>{}</c></t>"
    drawn = [(rng.choice("RS"), text.format(*rng.choices("12", k=2), *rng.choices(values, k=2))) for _ in range(30)]
    docs = parsed([(stream, body, float(i // 3)) for i, (stream, body) in enumerate(drawn)])
    late = [*docs[10:20], *docs[:10], *docs[20:]]
    wanted = expected(some, docs)
    assert wanted
    for batches in ([docs[:12], docs[12:]], [late[:9], late[9:20], late[20:]]):
        assert joined(some, batches, above=True) == wanted
