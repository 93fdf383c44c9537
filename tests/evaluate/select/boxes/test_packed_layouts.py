"""The kernels of the packed tree are called with arrays of one layout, the one they are compiled for at set-up."""

from __future__ import annotations

import numpy as np
import pytest

from fishweir.evaluate.precompile import called, recorded
from fishweir.evaluate.select.boxes.packed import PackedIndex
from fishweir.evaluate.select.boxes.regions import Boxes


@pytest.mark.parametrize("queries", [100, 40_000], ids=["exact codes", "quantiles"])
@pytest.mark.parametrize("attributes", [1, 2])
@pytest.mark.parametrize("rows", [1, 5])
def test_called_kernels_are_compiled_at_set_up(queries: int, attributes: int, rows: int) -> None:
    rng = np.random.default_rng(3)
    low = rng.random((queries, attributes))
    index = PackedIndex(Boxes.from_ranges(low, low + 0.001))
    values = low[:rows]
    matches = index.match(values)
    for row in range(rows):
        inside = ((low <= values[row]) & (values[row] <= low + 0.001)).all(axis=1)
        assert sorted(matches.of(row)) == np.flatnonzero(inside).tolist()
    own = {line for line in called() if ".packed_kernels list_matches" in line or ".packed_kernels encode" in line}
    assert own
    assert own <= set(recorded())


@pytest.mark.parametrize("room", [None, 300])
def test_results_are_in_the_order_of_the_tuples(room: int | None) -> None:
    """The tree processes them along a curve, even if there is room for only some of them."""
    rng = np.random.default_rng(4)
    low = rng.random((40_000, 2))
    index, values = PackedIndex(Boxes.from_ranges(low, low + 0.05)), rng.random((1_000, 2))
    matches = index.match(values, room)
    assert (len(matches) < len(values)) == (room is not None)
    assert (np.diff(matches.tuples) > 0).all()
    for row, tuple in enumerate(matches.tuples):
        inside = ((low <= values[tuple]) & (values[tuple] <= low + 0.05)).all(axis=1)
        assert sorted(matches.of(row)) == np.flatnonzero(inside).tolist()
