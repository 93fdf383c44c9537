"""Results read in tasks equal those read by the driver: the same rows in the same order, however distributed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import fishweir
from fishweir import testing
from fishweir.engine.reading import ResultSelection, reader_of
from fishweir.pipeline import shares
from fishweir.pipeline.commits import Commit
from fishweir.pipeline.shares import Share, parts_of
from fishweir.pipeline.spark import reading
from tests import strategies as st
from tests.pipeline.test_reading import fill


def filled(folder: Path) -> pa.Table:
    """Fills a home, with alternatives and with queries dropped and added on the way. Returns what the driver reads."""
    with testing.open(folder) as weir:
        weir.execute("create stream never_read (x int); create query never as select x from never_read")
        fill(weir)
        weir.drop("some")
        weir.execute("create query late as select k from R where k > 0 or s = 'x'")
        weir.publish("R", [{"k": k, "s": "x", "d": None, "b": None} for k in range(20)])
        weir.run(until_idle=True)
        return weir.results().to_arrow()


def test_shares_cover_all_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = filled(tmp_path / "home").to_pylist()
    monkeypatch.setattr(shares, "AT_ONCE", 7)
    with testing.open(tmp_path / "home") as weir:
        selection = ResultSelection(reader_of(weir.home, weir.catalog), weir.table, None)
        parts = list(parts_of(selection.commits()))
        assert max(len(part) for part in parts) == 1
        found = [
            r
            for part in parts
            for commit, share in part
            for batch in selection.batches([commit], share)
            for r in batch.results()
        ]
    assert [result.to_dict()["query"] for _, result in found] == [row["query"] for row in wanted]
    assert [result.documents for _, result in found] == [row["documents"] for row in wanted]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=30), st.integers(1, 6))
def test_a_document_is_in_one_share(entries: list[tuple[int, int]], count: int) -> None:
    documents = np.array(sorted(document for document, _ in entries), np.int64)
    sizes = np.array([size for _, size in entries], np.int64)
    spans = [Share(place, count).of(sizes, documents) for place in range(count)]
    assert [place for span in spans for place in range(span.start, span.stop)] == list(range(len(entries)))
    held = [set(documents[span].tolist()) for span in spans]
    assert sum(map(len, held)) == len(set(documents.tolist()))


def test_small_commits_are_read_together() -> None:
    commits = [Commit(batch, 1, matches=matches) for batch, matches in enumerate([1, 2, 120_000, 0, 49_999, 2])]
    parts = [[(commit.batch, share) for commit, share in part] for part in parts_of(commits)]
    whole = Share()
    split = [[(2, Share(place, 3))] for place in range(3)]
    assert parts == [[(0, whole), (1, whole)], *split, [(3, whole), (4, whole)], [(5, whole)]]


def test_in_tasks_of_spark(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = filled(tmp_path / "home")
    monkeypatch.setattr(shares, "AT_ONCE", 40)
    with fishweir.open(tmp_path / "home", spark=spark) as weir:
        frame = weir.results().to_spark()
        assert frame.rdd.getNumPartitions() > 2
        found = frame.toArrow()
        assert found.to_pylist() == wanted.to_pylist()
        assert weir.results().to_arrow().equals(wanted)  # too few for tasks
        monkeypatch.setattr(reading, "MANY", 0)
        assert weir.results().to_arrow().equals(wanted)
        assert weir.results("late").to_arrow().to_pylist() == [r for r in wanted.to_pylist() if r["query"] == "late"]
        assert not list((tmp_path / "home" / "results").glob("reading-*"))
        assert weir.results("never").to_arrow().num_rows == weir.results("never").to_spark().count() == 0
