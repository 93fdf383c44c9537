"""Micro-batches that are read together have the same results as each alone, in the same order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from fishweir import testing
from fishweir.pipeline import results
from fishweir.pipeline.result_columns import to_record_batch, to_table

STATEMENTS = """
create stream R (k int, s string); create stream S (k int, s string); create stream T (k int); create stream D;
create query alone as select s from R where k > 1 or s = 'x';
create query pair as select R.s, S.k from R [range 100 seconds], S [range 100 seconds] where R.k = S.k;
create query three as select R.s, S.s, T.k from R [range 100 seconds], S [range 100 seconds], T [range 100 seconds]
    where R.k = S.k and S.k = T.k;
create query hit as select <hit by=$a>{t}{b}</hit> from D//book->b[author->a][title->t];
create query both as D//book->x[.//author->y] FOLLOWED BY{y=v, 100} D//blog->u[.//author->v]
"""


def published(weir: testing.Weir, batch: int) -> None:
    for stream in "RS":
        weir.publish(stream, [{"k": k, "s": "é\n" if k else "x"} for k in range(batch % 3 + 1)])
    weir.publish("T", [{"k": batch % 2}])
    text = "<title>&lt;t&gt;</title>"
    weir.publish("D", [f"<{tag}><author>a&amp;{batch % 2}</author>{text}</{tag}>" for tag in ("book", "blog")])
    weir.step()


@pytest.mark.parametrize("pairs", [results.PAIRS_AT_ONCE, 3])
def test_reading_together_matches_reading_individually(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: int
) -> None:
    monkeypatch.setattr(results, "PAIRS_AT_ONCE", pairs)
    monkeypatch.setattr(results, "FEW", min(results.FEW, pairs))
    with testing.open(tmp_path / "home") as weir:
        weir.execute(STATEMENTS)
        for batch in range(6):
            if batch == 3:
                weir.drop("alone")
                weir.execute("create query late as select k from T")
            published(weir, batch)
        reader, commits = weir._reader, weir.table.commits()
        groups = [some for some, _ in reader._together(weir.table, commits, results.ENTRIES_AT_ONCE)]
        assert [one for some in groups for one in some] == commits
        assert 1 < len(groups) < len(commits)
        alone = [batch for commit in commits for batch in reader.batches(weir.table, [commit])]
        together = weir.results().to_arrow()
        assert together.equals(pa.Table.from_batches([to_record_batch(batch) for batch in alone]))
        assert together.equals(to_table(weir.results()))
        assert {"alone", "pair", "three", "hit", "both", "late"} == set(together.column("query").to_pylist())


@pytest.mark.parametrize("entries", [0, 1, 4096, 50_000, 100_000, 1_000_000])
def test_cores_share_the_work_evenly(monkeypatch: pytest.MonkeyPatch, entries: int) -> None:
    monkeypatch.setattr(results, "CORES", 2)
    size = results.evenly(entries)
    assert results.FEW <= size <= results.ENTRIES_AT_ONCE
    if entries > 2 * results.FEW:
        blocks = -(-entries // size)
        assert blocks % 2 == 0
        assert entries - (blocks - 1) * size > 0.99 * size
