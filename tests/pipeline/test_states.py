"""The states that a process has written or read, and their memory."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np

from fishweir import testing
from fishweir.evaluate.arrays import by_key
from fishweir.pipeline.states import cached_states, forget_states, sealed_states, write_states


def test_states_that_nobody_reads_are_forgotten(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("""
            create stream R (k int);
            create query j as select a.k from R [range 10 seconds] a, R [range 10 seconds] b where a.k = b.k;
        """)
        seen = {}
        for now in range(0, 20_000, 1_000):  # windows and allowances pass
            weir.publish("R", [{"k": 1}, {"k": 2}], timestamps=[float(now), float(now)])
            weir.run(until_idle=True)
            for file in weir.table.newest().states:
                seen[file["name"]] = weakref.ref(cached_states(weir.home.state / file["name"])["joins"])
        gc.collect()
        named = {file["name"] for commit in weir.table.commits()[-2:] for file in commit.states}
        assert {name for name, state in seen.items() if state() is not None} == named
        assert len(named) < len(seen) / 2


def test_some_are_kept(tmp_path: Path) -> None:
    one, two, other = tmp_path / "a" / "1.state", tmp_path / "a" / "2.state", tmp_path / "b" / "1.state"
    for path in (one, two, other):
        write_states(path, {})
    before = {path: sealed_states(path)[0] for path in (one, two, other)}
    forget_states(tmp_path / "a", but={"2.state"})
    assert {path: sealed_states(path)[0] is before[path] for path in before} == {
        one: False,
        two: True,
        other: True,
    }


def test_values_by_key() -> None:
    values = np.arange(6.0)
    for keys in ([3, 3, 1, 1, 1, 2], [1, 2, 1, 2, 3, 1], [5] * 6):
        found = by_key(np.array(keys), values)
        wanted = {key: [value for own, value in zip(keys, values, strict=True) if own == key] for key in keys}
        assert {key: own.tolist() for key, own in found.items()} == wanted
    assert by_key(np.array([], np.int64), np.array([])) == {}
