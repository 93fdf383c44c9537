"""Publishing to several streams at once: one micro-batch, and the ids of each publication."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fishweir import QueryError, testing
from fishweir.engine.publishing import numbered


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
    assert numbered("R-", range(*numbers)) == [f"R-{number}" for number in range(*numbers)]


@pytest.mark.parametrize("count", [3, 3_000])
def test_programs_may_pass_ids_on_as_json(tmp_path: Path, count: int) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream R (k int)")
        given = weir.publish("R", [{"k": 1}] * count)
    assert json.loads(json.dumps(given)) == [f"R-{number}" for number in range(1, count + 1)]
