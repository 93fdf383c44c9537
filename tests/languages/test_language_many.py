"""`register_many` in columns: reading columns agrees with parsing the text of each row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fishweir.algebra.feeds import to_query
from fishweir.algebra.path_queries import own_query
from fishweir.errors import QueryError
from fishweir.languages import many
from fishweir.languages.bulk import render_rows
from fishweir.languages.many import parse_rows
from fishweir.languages.script import parse_script

ROWS = [
    {"name": "a", "w": "fish", "v": 3, "t": 2.5, "p": "//b[c > 1]", "q": "/b"},
    {"name": "b-1", "w": "it's; -- 'x'", "v": -4, "t": 1e-7, "p": "/b/*[d = 'x;y']", "q": "//b/c"},
    {"name": "c.d", "w": "“fish” # weir", "v": 5, "t": 7, "p": "//b/@id", "q": "/*/c"},
    {"name": "e", "w": "a b", "v": 10**20, "t": 0.1, "p": "//b[.//c[d]]/e", "q": "//e"},
]
ALIKE = {
    "sql": "create query $name as select x from R where x > $v and s contains $w",
    "sql quoted": "create query $name as select x from R where s = 'from $w to $w' and x < 3",
    "sql window": "create query $name as select R.x from R [range $t seconds], Q [rows 5] where R.x = Q.x and R.y > $v",
    "sql true": "create query $name as select x from R where b = true and x > $v",
    "xscl": "create query $name as S//book[price > $v]",
    "xscl join": "S//a->x[b = $w] FOLLOWED BY{x=y, $t} T//b->y publish $name",
    "niagaracq": "create $name where <r><v>$v</v><w>$x</w></r> in S, $x = $w construct <o>$x</o> do append 'f'",
    "roses": "create feed $name from S as $i where $i[title contains $w or description contains $w]",
    "xquery": "create query $name as for $a in stream('S')/r where $a/v > $v return <x>{$a/b}</x> pref v(b) = 0.2",
    "every": "create query $name as select x from R where x > $v every 1 hour start 2 days;\n",
}
OTHERS = {
    "a path": "create query $name as S$p",
    "a path of xquery": "create query $name as for $a in stream('S')$q return <x>{$a}</x>",
    "an action of its own": "create query $name as S//b do append $w",
    "a name twice": "create query $name as S//b[c = $v] publish $name",
    "two statements": "create query $name as S//b[c = $v]; create query $name-2 as S//b[c = $v]",
    "no name": "S//b[c = $v]",
}


def parsed(text: str) -> list[object]:
    whole = [to_query(statement) for one in render_rows(text, ROWS) for statement in parse_script(one, 5.0)]
    return [replace(one, line=1) for one in whole]


def given(text: str) -> list[object]:
    return [replace(own_query(some.one(i)), line=1) for some in parse_rows(text, ROWS, 5.0) for i in range(len(some))]


@pytest.mark.parametrize("text", [*ALIKE.values(), *OTHERS.values()], ids=[*ALIKE, *OTHERS])
def test_columns_parse_like_single_rows(text: str) -> None:
    assert given(text) == parsed(text)


@pytest.mark.parametrize("text", ALIKE.values(), ids=ALIKE)
def test_read_from_columns(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed(text)
    monkeypatch.setattr(many, "_one_by_one", None)
    assert len(given(text)) == len(ROWS)


def test_columns_of_mixed_types() -> None:
    text = "create query $name as S//b[c = $v]"
    rows = [{"name": f"q-{i}", "v": v} for i, v in enumerate([1, "x", 2.5, "3"])]
    found = [some.one(i).constants for some in parse_rows(text, rows, 5.0) for i in range(len(some))]
    assert found == [(1.0,), ("x",), (2.5,), ("3",)]


@pytest.mark.parametrize(
    "path",
    ["b", "//b; delete q", "//b publish x", "//b] JOIN", "//b--c", "//b[c = 'x]", "//b[$c]", "//b do x"],
)
def test_values_that_are_not_paths(path: str) -> None:
    with pytest.raises(QueryError, match="row 2: the value of the column 'p' is not a path"):
        list(parse_rows("create query $name as S$p", [*ROWS[:1], {"name": "x", "p": path}], 5.0))


def test_errors_name_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "CHUNK", 2)
    rows = [*ROWS, {"name": "f", "v": None}]
    with pytest.raises(QueryError, match="row 5: the column 'v' has no value"):
        list(parse_rows("create query $name as S//b[c = $v]", rows, 5.0))
