"""Spark's daemon for Python workers, which loads the required modules once before forking instead of once per worker.

Without it, the first micro-batch waits until every worker has imported the same modules, on all cores at once.

Spark starts the daemon only with the first task. The driver therefore starts one together with the JVM
(jvm.py). It loads the modules and waits at a socket. The daemon that Spark starts hands over its role, that is its
standard input, output and environment, and ends when the other one ends.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import socket
import sys
from pathlib import Path

PLACE = "FISHWEIR_WARM_WORKERS"
"""The environment variable with the path of the socket."""
WORKER = "pyspark.worker"
PATIENCE = 30.0
"""Seconds for which Spark's daemon waits until the other one has loaded the modules."""


def without_zip(path: list[str]) -> list[str]:
    """The module path without Spark's zip of pyspark, which Spark puts before the installed package. Python does not
    store compiled modules of a zip, so each process would compile them. The zip is removed if it belongs to the
    installed package.
    """
    zips = [entry for entry in path if Path(entry).name == "pyspark.zip"]
    packages = {entry: Path(entry).resolve().parents[2] for entry in zips if len(Path(entry).resolve().parents) > 2}
    installed = {Path(entry).resolve() / "pyspark" for entry in path if entry not in zips}
    return [entry for entry in path if entry not in packages or packages[entry] not in installed]


def load() -> None:
    """Loads the modules that workers need."""
    import pyspark.daemon  # noqa: F401

    import fishweir.pipeline.probe
    import fishweir.pipeline.worker  # noqa: F401

    gc.freeze()  # no collection of a worker visits them, so their pages stay shared


def hand_over_to(place: str) -> bool:
    """Hands the role of this process over to the daemon that waits at `place`, and returns when that daemon has ended.
    Returns False immediately if there is none.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        try:
            line.connect(place)
            line.settimeout(PATIENCE)
            socket.send_fds(line, [pickle.dumps((dict(os.environ), sys.path))], [0, 1, 2])
            if not line.recv(1):
                return False
            line.settimeout(None)
            line.recv(1)
        except OSError:
            return False
        return True


def take_over_at(place: str) -> bool:
    """Loads the modules that workers need, waits for Spark's daemon and takes over its role, unless the driver ends
    first.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place)
        listener.listen()
        load()
        ready, _, _ = select.select([listener.fileno(), 0], [], [])
        if listener.fileno() not in ready:
            return False
        line, _ = listener.accept()
    Path(place).unlink()
    given, numbers, _, _ = socket.recv_fds(line, 1 << 20, 3)
    environment, path = pickle.loads(given)
    for number, descriptor in enumerate(numbers):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.extend(entry for entry in path if entry not in sys.path)
    line.sendall(b".")
    line.detach()  # stays open as long as this process lives
    return True


def main() -> None:
    sys.path[:] = without_zip(sys.path)
    _, *given = sys.argv
    if given[:1] == ["--wait"]:
        sys.argv[1:] = [WORKER]
        if not take_over_at(given[1]):
            return
    elif given == [WORKER]:
        if (place := os.environ.get(PLACE)) and hand_over_to(place):
            return
        load()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
