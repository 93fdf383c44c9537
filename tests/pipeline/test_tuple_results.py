"""Results of tuples constructed in columns equal those constructed one by one."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.pipeline import tuple_results
from fishweir.pipeline.result import Result


@pytest.mark.parametrize("at_once", [1, 4096])
def test_results_in_columns_match_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(tuple_results, "AT_ONCE", at_once)
    with testing.open(tmp_path / "home") as weir:
        weir.execute("""
            create stream R (x int, s string);
            create query all_of_it as select * from R;
            create query some as select s, x from R where x > 1;
            create query again as select s, x from R where x > 1;
            create query one as select x from R where s = 'b'
        """)
        weir.publish("R", [{"x": 1, "s": "a"}, {"x": 2, "s": None}], ids=["own", ""], timestamps=[1.0, 2.0])
        weir.publish("R", [{"x": 3, "s": "b"}], timestamps=[3.0])
        weir.run(until_idle=True)
        commits = weir.table.commits()
        batches = list(weir._reader.batches(weir.table, commits))
        made = [pair for batch in batches for pair in batch.results()]
        assert all(tuple_results.tuple_results(batch) is not None for batch in batches)
        one_by_one = [pair for batch in batches for pair in batch._one_by_one()]
    assert [fields(result) for result in made] == [fields(result) for result in one_by_one]
    assert len(made) == 3 + 2 + 2 + 1


def fields(pair: tuple[int, Result]) -> tuple[object, ...]:
    """All fields of a result, including those that are not compared."""
    number, result = pair
    return number, *(getattr(result, one.name) for one in dataclasses.fields(result))


def test_results_from_columns_are_regular_results() -> None:
    (made,) = tuple_results.results_of(["q"], [["d"]], [1.0], [{}], ["text"], [None], [2], [(0, 1)], [()])
    assert made == Result("q", ["d"], 1.0, {}, "text")
    assert (made.origin, made.place) == (2, (0, 1))
    assert pickle.loads(pickle.dumps(made)) == made
    assert dataclasses.replace(made, query="r").query == "r"
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.query = "other"  # type: ignore[misc]
