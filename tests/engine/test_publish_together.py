"""Publishing to several streams at once: one micro-batch, and the ids of each publication."""

from __future__ import annotations

from operator import add
from pathlib import Path

import pytest

from fishweir import QueryError, testing
from fishweir.engine.numbered_ids import AT_ONCE, numbered_ids


def test_one_micro_batch(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("""
            create stream R (k int);
            create stream T (k int);
            create query j as select R.k from R [range 10 seconds], T [range 10 seconds] where R.k = T.k;
        """)
        given = weir.publish_together([("R", [{"k": 1}, {"k": 2}], [1.0, 2.0]), ("T", {"k": 1}, [3.0], ["t"])])
        assert given == [["R-1", "R-2"], ["t"]]
        while weir.step():
            pass
        assert [result.documents for result in weir.results("j")] == [["R-1", "t"]]
        assert len(weir.table.commits()) == 1
        with pytest.raises(QueryError, match="no stream Z"):
            weir.publish_together([("Z", [{"k": 1}])])


@pytest.mark.parametrize(
    "numbers", [(1, 1), (1, 5), (1, 1000), (998, 1003), (1, 3500), (1000, 2000), (1500, 1500), (999_990, 1_000_010)]
)
def test_ids_by_number(numbers: tuple[int, int]) -> None:
    wanted = [f"R-{number}" for number in range(*numbers)]
    found = numbered_ids("R", range(*numbers))
    assert isinstance(found, list) == (len(wanted) <= AT_ONCE)
    assert (list(found), len(found)) == (wanted, len(wanted))
    assert found == wanted
    assert wanted == found
    assert found != wanted[:-1] or not wanted
    assert (found[2:7], found[::-3], found[-3:]) == (wanted[2:7], wanted[::-3], wanted[-3:])
    assert [found[place] for place in range(-len(wanted), len(wanted))] == 2 * wanted
    assert (add(found, ["x"]), add(["x"], found)) == ([*wanted, "x"], ["x", *wanted])
    with pytest.raises(IndexError):
        found[len(wanted)]


def test_many_ids_are_shown_by_the_first_and_the_last() -> None:
    assert repr(numbered_ids("R", range(1, AT_ONCE + 2))) == f"['R-1', ..., 'R-{AT_ONCE + 1}']"
