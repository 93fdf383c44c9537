"""SQL's joins: windows, names of streams, shared skeletons, and select lists."""

from __future__ import annotations

import math

import pytest

from fishweir.algebra.clauses import to_normals
from fishweir.algebra.construct import joined_columns
from fishweir.algebra.documents import parse_document
from fishweir.algebra.nodes import AllColumnsOutput, ColumnOutput, Step
from fishweir.languages.bulk import render_rows
from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache


def parsed(text: str):
    (statement,) = parse_script(text)
    return statement


FORMS = ["R {}, S [range 1]", "R {} as R, S [range 1]", "R as R {} join S [range 1] on R.x = S.x"]
WINDOWS = [
    ("[range 10]", 10.0, False),
    ("[range 10 seconds]", 10.0, False),
    ("[ RANGE  2.5 Minutes ]", 150.0, False),
    ("[range 1 day]", 86400.0, False),
    ("[range '2 hours']", 7200.0, False),
    ("[range unbounded]", math.inf, False),
    ("[range INF]", math.inf, False),
    ("[rows unbounded]", math.inf, False),
    ("[rows 100]", 100.0, True),
]


@pytest.mark.parametrize(("text", "end", "rows"), WINDOWS)
@pytest.mark.parametrize("form", FORMS)
def test_window(form: str, text: str, end: float, rows: bool) -> None:
    query = parsed(f"select * from {form.format(text)}")
    left, right = query.shape.windows
    assert (query.constants[left.end.index], left.rows) == (end, rows)
    assert (query.constants[right.end.index], right.rows, query.shape.strict) == (1.0, False, False)


def test_join_on_is_where() -> None:
    one = parsed("select R.x from R [range 5], S [rows 6] where R.x = S.y and R.k > 3")
    two = parsed("select R.x from R [range 5] inner join S [rows 6] on R.x = S.y where R.k > 3")
    assert [n.template for n in to_normals(one.shape)] == [n.template for n in to_normals(two.shape)]


def test_queries_that_differ_in_constants_share_a_template() -> None:
    texts = [
        f"select a.x from R [range {t}] as a, S [rows {n}] as b where a.x = b.y and (a.k > {k} or b.k in ({k}, 9))"
        for t, n, k in ((5, 6, 7), (50, 60, 70))
    ]
    one, two = (to_normals(parsed(text).shape) for text in texts)
    assert [n.template for n in one] == [n.template for n in two]
    assert len(one) == 3
    assert sorted(n.template.turn for n in one) == [0, 0, 1]


def test_skeleton_gives_what_a_full_parse_gives() -> None:
    text = "create query {} as select * from R [range {} minutes], S [rows {}] where R.x = S.x and R.k > {}"
    cache = SkeletonCache()
    parse_script(text.format("a", 5, 6, 7), 0.0, cache)
    again = text.format("b", 50, 60, -7.5)
    found = cache.find(again, 1, 0.0)
    assert found is not None
    assert found == parse_script(again, 0.0, SkeletonCache())[0]
    assert found.constants == (3000.0, 60.0, -7.5)
    assert cache.find(text.format("c", 5, 1.5, 7), 1, 0.0) is None


def test_windows_from_rows() -> None:
    text = "create query $n as select * from R [range $w], S [rows $r] where R.x = S.x"
    texts = render_rows(text, [{"n": "a", "w": math.inf, "r": 5}, {"n": "b", "w": 2.5, "r": 6}])
    assert [parsed(one).constants for one in texts] == [(math.inf, 5.0), (2.5, 6.0)]


def test_select_list() -> None:
    shape = parsed('select a.*, b.x as z, b."p/@q" as y from R [range 5] as a, R [range 5] as b').shape
    assert shape.columns == (
        AllColumnsOutput(0, "a"),
        ColumnOutput("z", 1, (Step("x"),)),
        ColumnOutput("y", 1, (Step("p"), Step("q", "attribute"))),
    )
    blocks = [(parse_document(b"<t><x>1</x><x>2</x><z>3</z></t>"), None), (parse_document(b"<t/>"), {"x": 5})]
    assert joined_columns(shape.columns, blocks) == {"x": "1", "a.z": "3", "z": 5, "y": None}


THREE = [
    "from R [range 5], S [rows 6] as s, T [range 1 minute] where R.x = s.y and s.z < T.z and T.k > 3",
    "from R [range 5] join S [rows 6] as s on R.x = s.y join T [range 1 minute] on s.z < T.z where T.k > 3",
    "from R [range 5], S [rows 6] as s join T [range 1 minute] on s.z < T.z where R.x = s.y and T.k > 3",
    "from R [range 5] cross join S [rows 6] as s cross join T [range 60] where T.z > s.z and 3 < T.k and s.y = R.x",
]


@pytest.mark.parametrize("text", THREE)
def test_three_streams_in_all_forms(text: str) -> None:
    query = parsed(f"select * {text}")
    (normal,) = to_normals(query.shape)
    assert normal.template == to_normals(parsed(f"select * {THREE[0]}").shape)[0].template
    assert normal.template.signature == "R#1.x = S#2.y and S#2.z < T#3.z in R join S join T"
    ends = [(query.constants[window.end.index], window.rows) for window in query.shape.windows]
    assert ends == [(5.0, False), (6.0, True), (60.0, False)]
    assert query.shape.columns == tuple(AllColumnsOutput(i, name) for i, name in enumerate(["R", "s", "T"]))


def test_queries_of_many_streams_share_a_template() -> None:
    """Whether windows are equal or not, regardless of constants; conjunctions with the same edges as in joins of
    two."""
    texts = [
        f"select a.x from R [range {t}] as a, S [range {n}] as b, S [rows {n}] as c, T [range {t}] as d "
        f"where a.x = b.y and b.y = c.y and (d.k > {k} or d.k = 9 or d.k > {k + 1})"
        for t, n, k in ((5, 6, 7), (50, 50, 70))
    ]
    one, two = (to_normals(parsed(text).shape) for text in texts)
    assert [n.template for n in one] == [n.template for n in two]
    assert sorted(n.template.turn for n in one) == [0, 1, 2]
    assert one[0].template.sources == tuple(block.source for block in parsed(texts[0]).shape.blocks)


def test_constants_of_many_streams_are_placed_by_skeleton() -> None:
    cache = SkeletonCache()
    text = "create query q{0} as select R.x from R [range {0}], S [rows {0}], T [range 1 hour] where T.k > {0}"
    for i in (4, 5):
        (statement,) = parse_script(text.format(i), cache=cache)
        assert statement.constants == parsed(text.format(i)).constants
        assert statement.shape == parsed(text.format(i)).shape
