"""The home folder: threads and processes that write the same files at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

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
