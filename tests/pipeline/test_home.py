"""The home folder: threads and processes that write the same files at once."""

from __future__ import annotations

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
