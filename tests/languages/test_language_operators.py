"""Comparisons have the same spellings in all languages: `≤`, `≥` and `≠` are `<=`, `>=` and `!=`, and `<>` is `!=`."""

from __future__ import annotations

import pytest

from fishweir.languages.script import parse_script
from fishweir.languages.skeleton import SkeletonCache

STATEMENTS = [
    "create q where <a><b>$b</b><c>$c</c></a> in S, $b {} 5, $c {} 'x', $b {} $c construct $b",
    "select * from R where x {} 5 and 7 {} y and not (x {} z)",
    "select R.x from R [range 5], S [rows 5] where R.x {} S.x and R.y{}5",
    "S//a[b {} 5]->x[c {} 'x']",
    "S//a->x[b->y] FOLLOWED BY{{x {} z, 5}} T//c->z",
    "create feed F from S where [b {} 5 or c {} 'x' and year(d) {} 2025]",
    "create feed F from S as $s join last 5 days on T with $s[b {} window.b]",
]


def meaning(text):
    (statement,) = parse_script(text, cache=SkeletonCache())
    return (statement.query if hasattr(statement, "query") else statement.shape), statement.constants


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize(("spelling", "op"), [("≤", "<="), ("≥", ">="), ("≠", "!="), ("<>", "!=")])
def test_spellings(statement, spelling, op):
    count = statement.count("{}")
    assert meaning(statement.format(*[spelling] * count)) == meaning(statement.format(*[op] * count))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_different_comparisons_differ(statement):
    count = statement.count("{}")
    assert meaning(statement.format(*["≤"] * count)) != meaning(statement.format(*["≥"] * count))
