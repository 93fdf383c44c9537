"""A daemon with loaded modules takes over from the one that Spark starts."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fishweir.pipeline.spark.daemon import PLACE, WORKER

DAEMON = [sys.executable, "-m", "fishweir.pipeline.spark.daemon"]
SECRET = "PYTHON_WORKER_FACTORY_SECRET"


def started(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([*DAEMON, *arguments], env=os.environ | environment, **pipes)


@contextmanager
def worker_of(daemon: subprocess.Popen[bytes]) -> Iterator[int]:
    """The process id of a worker, forked as Spark requests it; then the daemon is ended as Spark does."""
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    (port,) = struct.unpack(">i", daemon.stdout.read(4))
    with socket.create_connection(("127.0.0.1", port)) as line:
        yield struct.unpack(">i", line.recv(4, socket.MSG_WAITALL))[0]
    daemon.stdin.close()
    daemon.wait()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "workers")


def test_workers_are_forked_from_the_waiting_daemon(place: str) -> None:
    with started("--wait", place) as warm:
        while not Path(place).exists():
            assert warm.poll() is None
        with started(WORKER, **{PLACE: place, SECRET: "x"}) as daemon, worker_of(daemon) as worker:
            assert parent_of(worker) == warm.pid
        warm.wait()
    assert not Path(place).exists()


def test_without_a_waiting_daemon_the_process_is_the_daemon(place: str) -> None:
    with started(WORKER, **{PLACE: place, SECRET: "x"}) as daemon, worker_of(daemon) as worker:
        assert parent_of(worker) == daemon.pid


def test_a_waiting_daemon_ends_with_the_driver(place: str) -> None:
    with started("--wait", place) as warm:
        assert warm.stdin is not None
        warm.stdin.close()
        assert warm.wait() == 0
