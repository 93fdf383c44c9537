"""When state files are merged: late if a probe reads several about as fast as one, else once they are similar."""

import pytest

from fishweir import testing
from fishweir.evaluate.join.operators import RUNS_AT_ONCE

BY_ROWS = "select R.k from R [range 1000 seconds], T [range 1000 seconds] where R.k = T.k and R.v >= 1"
COUNTING = "select R.k from R [rows 1000], T [rows 1000] where R.k = T.k and R.v >= 1"


@pytest.mark.parametrize(("query", "most"), [(BY_ROWS, RUNS_AT_ONCE), (COUNTING, 1)])
def test_files_are_merged_above_a_number(tmp_path, query, most):
    with testing.open(tmp_path / "home") as weir:
        weir.execute(f"create stream R (k int, v int); create stream T (k int, v int); create query q as {query}")
        counts = []
        for i in range(2 * RUNS_AT_ONCE):
            weir.publish_together([(name, [{"k": 7, "v": 1}], [float(i)]) for name in "RT"])
            weir.step()
            counts.append(len(weir.table.newest().states))
        assert max(counts) == most
        assert len(list(weir.results("q"))) == len(counts) ** 2, "each tuple joins all of the other stream"
