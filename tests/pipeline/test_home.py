"""The home folder: threads and processes that write the same files at once."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from fishweir import testing
from fishweir.algebra.nodes import StreamDefinition
from fishweir.pipeline.home import Home, open_log


def test_threads_add_a_stream_at_once(tmp_path):
    """Both the thread that registers a stream and the job that opens it may be first."""
    home, together = Home(tmp_path / "home"), Barrier(4)
    home.create()

    def add(_: int) -> None:
        for id in range(1, 101):
            together.wait(600)
            home.add_stream(id, StreamDefinition(f"S{id}"))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(4)))
    assert home.stream_ids() == list(range(1, 101))
    assert open_log(home.streams, 7).stream.name == "S7"


def test_a_copy_in_the_same_place_has_its_own_logs(tmp_path: Path) -> None:
    """A copy keeps the times of its files."""
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream R (x int); create query q as select * from R where x > 0")
    shutil.copytree(tmp_path / "home", tmp_path / "before")
    for numbers in ([1, 2, 3], [4]):
        with testing.open(tmp_path / "home") as weir:
            weir.publish("R", [{"x": number} for number in numbers])
            weir.run(until_idle=True)
            assert [result.output["x"] for result in weir.results()] == numbers
        shutil.rmtree(tmp_path / "home")
        shutil.copytree(tmp_path / "before", tmp_path / "home")


def test_a_copy_with_the_times_and_inodes_of_the_original_has_its_own_logs(tmp_path: Path) -> None:
    """A file system uses the inodes of deleted files again."""
    for numbers in ([1, 2, 3], [4]):
        with testing.open(tmp_path / str(len(numbers))) as weir:
            weir.execute("create stream R (x int)")
            weir.publish("R", [{"x": number} for number in numbers])
    log, definition = tmp_path / "3/streams/1/log", tmp_path / "3/streams/1/stream.json"
    with testing.open(tmp_path / "3") as weir:
        assert weir.publish("R", [{"x": 5}]) == ["R-4"]
    before = definition.stat()
    shutil.rmtree(log)
    shutil.copytree(tmp_path / "1/streams/1/log", log)
    definition.write_bytes((tmp_path / "1/streams/1/stream.json").read_bytes())
    os.utime(definition, ns=(before.st_atime_ns, before.st_mtime_ns))
    with testing.open(tmp_path / "3") as weir:
        assert weir.publish("R", [{"x": 5}]) == ["R-2"]
