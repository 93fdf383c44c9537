"""Joins in parentheses and pure sequences through micro-batches: they combine their parts, in any batches."""

from __future__ import annotations

import random

import pytest

TREES = """
    create query right as select <t a=$m b=$n c=$o/> from S//r[@n->m][p->u]
        FOLLOWED BY{u=v, 4} (S//r[@n->n][p->v] JOIN{2} T//r[@n->o]);
    create query both as select <t a=$m b=$n c=$o/> from (S//r[@n->m] FOLLOWED BY{3} T//r[@n->n][p->v])
        JOIN{v=w, INF} (S//r[p->w] JOIN{w=z, 1} T//r[@n->o][p->z]);
    create query pure as select <t a=$m b=$n/> from S//r[@n->m][p = '1'] FOLLOWED BY{2 seconds} T//r[@n->n];
    create query pairs as select x from S//r->x JOIN{0} T//r;
"""
Row = tuple[str, int, str]


def tree(rows: dict[str, list[Row]]) -> dict[str, list[str]]:
    """The meaning of the queries, by trying every combination; rows are number, time and p."""
    s, t = rows["S"], rows["T"]
    inner = [(y, z) for y in s for z in t if abs(y[1] - z[1]) <= 2]
    right = [
        f'<t a="{x[0]}" b="{y[0]}" c="{z[0]}"/>'
        for x in s
        for y, z in inner
        if x[2] == y[2] and 0 < max(y[1], z[1]) - x[1] <= 4
    ]
    lefts = [(x, y) for x in s for y in t if 0 < y[1] - x[1] <= 3]
    rights = [(w, z) for w in s for z in t if w[2] == z[2] and abs(w[1] - z[1]) <= 1]
    both = [f'<t a="{x[0]}" b="{y[0]}" c="{z[0]}"/>' for x, y in lefts for w, z in rights if y[2] == w[2]]
    pure = [f'<t a="{x[0]}" b="{y[0]}"/>' for x in s for y in t if x[2] == "1" and 0 < y[1] - x[1] <= 2]
    pairs = [f'<r n="{x[0]}"><p>{x[2]}</p></r>' for x in s for y in t if x[1] == y[1]]
    return {"right": right, "both": both, "pure": pure, "pairs": pairs}


@pytest.mark.parametrize("seed", [1, 2])
def test_nested_joins_combine_their_parts(weir, seed: int) -> None:
    pick = random.Random(seed)
    weir.execute(f"create stream S; create stream T; {TREES}")
    rows: dict[str, list[Row]] = {"S": [], "T": []}
    for batch in range(4):
        for name, own in rows.items():
            new = [(f"{name}{len(own) + i}", batch * 3 + pick.randint(0, 3), pick.choice("12")) for i in range(3)]
            own += new
            bodies = [f'<r n="{n}"><p>{p}</p></r>' for n, _, p in new]
            weir.publish(name, bodies, timestamps=[float(at) for _, at, _ in new])
        weir.step()
    for _ in range(3):
        weir.step()
    for name, expected in tree(rows).items():
        assert sorted(result.output for result in weir.results(name)) == sorted(expected), name
        assert expected
    assert len(next(iter(weir.results("pure"))).documents) == 2
    assert "all pairs within the window" in weir.explain("pure")
