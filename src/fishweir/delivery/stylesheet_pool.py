"""Stylesheets with a time limit: a pool of processes applies them, and a process that takes too long is killed.

In: the path of a stylesheet and items. Out: the transformed items, BadItem for an item on which it fails, TooSlow for
one that takes longer than `ITEM_TIMEOUT`. After a few of these, TooSlow is raised. Processes are started on demand and
reused. At most `MAX_PROCESSES` of them work at a time.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from fishweir.delivery.stylesheets import BadItem

ITEM_TIMEOUT = 5.0
"""Seconds for one item, once the process is running."""
START_TIMEOUT = 60.0
MAX_PROCESSES = 2
MAX_FAILURES = 3
CHUNK = 100
"""The number of items that are sent together."""
COMMAND = ("-P", "-m", "fishweir.delivery.stylesheet_process")


class TooSlow(BadItem):
    """The stylesheet took too long and was killed."""


class _Process:
    def __init__(self) -> None:
        own, other = Pipe()
        self.connection: Connection[Any, Any] = own
        paths = os.pathsep.join(map(os.path.abspath, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, *COMMAND, str(other.fileno())],
            pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,  # keyboard interrupts must not reach it
        )
        other.close()
        self._receive(START_TIMEOUT)

    def ask(self, path: str, operation: str, items: Sequence[Any]) -> Iterator[tuple[bool, Any]]:
        """The answers of the process. Raises TimeoutError if an item takes too long, EOFError if the process ended."""
        self.connection.send((path, _written(path), operation, items))
        for _ in items:
            yield self._receive(ITEM_TIMEOUT)

    def _receive(self, patience: float) -> Any:
        if not self.connection.poll(patience):
            raise TimeoutError
        return self.connection.recv()

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.wait()


class _Pool:
    def __init__(self) -> None:
        self.room, self.lock = threading.BoundedSemaphore(MAX_PROCESSES), threading.Lock()
        self.free: list[_Process] = []
        atexit.register(self.end)

    def ask(self, path: str, operation: str, items: Sequence[Any]) -> list[Any]:
        """The result for each item, or a BadItem; up to the first item that is TooSlow."""
        name, found = Path(path).name, list[Any]()
        with self.room:
            process = self._acquire()
            try:
                for good, output in process.ask(path, operation, items):
                    found.append(output if good else BadItem(output))
            except TimeoutError:  # among the OSErrors
                process.end()
                reason = f"the stylesheet {name} exceeded the limit of {ITEM_TIMEOUT:g} s for an item"
                return [*found, TooSlow(reason)]
            except (EOFError, OSError):
                process.end()
                return [*found, TooSlow(f"the stylesheet {name} crashed the process that applied it")]
            except BaseException:
                process.end()
                raise
            with self.lock:
                self.free.append(process)
        return found

    def _acquire(self) -> _Process:
        with self.lock:
            while self.free:
                process = self.free.pop()
                if process.process.poll() is None:
                    return process
                process.end()
        return _Process()

    def end(self) -> None:
        with self.lock:
            while self.free:
                self.free.pop().end()


_pool = _Pool()


def render(path: str, items: Sequence[Any]) -> list[str | BadItem]:
    """The output of a stylesheet for results, in any format. Raises TooSlow after a few items that are too slow."""
    found: list[str | BadItem] = []
    slow = 0
    while len(found) < len(items):
        found += _pool.ask(path, "render", items[len(found) : len(found) + CHUNK])
        if isinstance(last := found[-1], TooSlow):
            slow += 1
            if slow >= MAX_FAILURES:
                raise last
    return found


def applying(path: str) -> Callable[[str], bytes]:
    """A function that transforms an item with a stylesheet. After a stylesheet took too long a few times, its items
    fail immediately, so that filling streams no longer waits for it.
    """
    slow = 0

    def apply(item: str) -> bytes:
        nonlocal slow
        if slow >= MAX_FAILURES:
            raise TooSlow(
                f"the stylesheet {Path(path).name} repeatedly exceeded the limit of {ITEM_TIMEOUT:g} s for an item"
            )
        (output,) = _pool.ask(path, "apply", [item])
        slow += isinstance(output, TooSlow)
        if isinstance(output, BadItem):
            raise output
        return bytes(output)

    return apply


def _written(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0
