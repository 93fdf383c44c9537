"""Indexes of regions are read from the segment file: no worker builds them."""

from __future__ import annotations

import pytest

from fishweir import testing
from fishweir.evaluate.plan.plan import forget_plans
from fishweir.evaluate.select.boxes import grid, packed
from fishweir.evaluate.select.boxes.regions import Boxes

STREAM = "create stream R (x double, y double, k int);"
WIDTHS = {"packed": (1, 20_000), "grid": (900, 2_000)}
"""By kernel, the width of the regions and their number."""
TUPLES = [{"x": float(x), "y": float(y), "k": x % 3} for x in range(0, 1000, 90) for y in range(0, 1000, 110)]


@pytest.mark.parametrize("kernel", WIDTHS)
@pytest.mark.parametrize("distinct", ["", " distinct on k within 1 hour"])
def test_a_worker_builds_no_index(
    weir: testing.Weir, monkeypatch: pytest.MonkeyPatch, kernel: str, distinct: str
) -> None:
    wide, size = WIDTHS[kernel]
    weir.execute(STREAM)
    rows = [{"name": f"q{i}", "a": i % 1000, "b": i % 1000 + wide, "c": i * 7 % 1000} for i in range(size)]
    text = "create query $name as select * from R where x >= $a and x <= $b and y >= $c" + distinct
    weir.register_many(text, rows)
    weir.publish("R", [{"x": -1.0, "y": -1.0, "k": 0}])
    weir.step()  # plans are written by now
    forget_plans()

    def build(*_: object) -> dict[str, object]:
        raise AssertionError("an index was built")

    for module in (packed, grid):
        monkeypatch.setattr(module, "built", build)
    with pytest.raises(AssertionError, match="an index was built"):
        packed.PackedIndex(Boxes.from_ranges([[0.0]], [[1.0]]))
    weir.publish("R", TUPLES)
    weir.step()
    found = {(one.query, one.output["x"], one.output["y"]) for one in weir.results()}  # type: ignore[index]
    whole = {
        (row["name"], one["x"], one["y"])
        for row in rows
        for one in TUPLES
        if row["a"] <= one["x"] <= row["b"] and one["y"] >= row["c"]
    }
    assert found == whole if not distinct else found < whole
    assert {name for name, *_ in found} == {name for name, *_ in whole}
    assert f"strategy  {kernel}" in str(weir.explain("q1"))
