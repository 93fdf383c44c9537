"""When the observed lateness of a stream is saved, and small files that are overwritten in place."""

import math
from pathlib import Path

import numpy as np

from fishweir import testing
from fishweir.pipeline.event_time import EventTime, load_lateness
from fishweir.pipeline.lateness import observe
from fishweir.sealed import overwrite_json, read_json


def test_later_items_are_saved_at_once(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S (x int)")
        id, _ = weir._log("S")
        known, front = EventTime(weir.home, weir.table, 0.0), -math.inf
        for start in (0.0, 100.0):
            times = np.arange(start, start + 100)
            known.add({str(id): observe(times, times, front, -math.inf)})
            front = float(times[-1])
        assert load_lateness(weir.home, id).items == 0, "items in order can wait until the next save"
        known.save()
        assert load_lateness(weir.home, id) == known.of(id)
        late = np.arange(front - 50, front - 40)
        known.add({str(id): observe(late, late + 60, front, -math.inf)})
        assert load_lateness(weir.home, id) == known.of(id)
        assert load_lateness(weir.home, id).greatest == 50


def test_an_overwritten_file_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "last"
    for value in ({"batch": 9}, {"batch": 10_000, "more": "x" * 100}, {"batch": 3}):
        overwrite_json(path, value)
        assert read_json(path) == value
