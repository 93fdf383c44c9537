"""Processor time of this process and its descendants: the JVM, Spark's Python workers and some peers are its children.

Between its rounds, a peer in a process of its own may still work, for example compile or collect garbage. Its processes
are therefore left out when Fishweir is measured, and the other way round.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """Processor seconds and wall seconds; the processor seconds of Python workers, of the JVM, and of converting
    documents when they are published."""

    processor: float
    wall: float
    workers: float = 0.0
    java: float = 0.0
    conversion: float = 0.0


class Stopwatch:
    """Starts when it is created; leaves out some processes and their descendants. Reading all processes takes
    milliseconds of this one, which are not counted."""

    def __init__(self, without: Collection[int] = ()) -> None:
        self._without = without
        self._before = _of_others(without)
        self._own, self._began = _own(), time.perf_counter()

    def spent(self) -> Spent:
        wall, own = time.perf_counter() - self._began, _own() - self._own
        each = {pid: seconds - self._before.get(pid, 0.0) for pid, seconds in _of_others(self._without).items()}
        workers, java = (sum(s for pid, s in each.items() if _runs(pid, name)) for name in (b"python", b"java"))
        return Spent(own + sum(each.values()), wall, workers, java)


def _own() -> float:
    """Seconds of this process, including children that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def descendants(without: Collection[int] = ()) -> set[int]:
    """The processes below this one, except some and their descendants."""
    return set(_of_others(without))


def _of_others(without: Collection[int]) -> dict[int, float]:
    """Seconds of each process below this one, including children that have ended."""
    parents, ended = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended in the meantime
            parents[int(folder.name)] = int(fields[1])
            ended[int(folder.name)] = sum(map(int, fields[13:15])) / TICK
    below = {pid: spent for pid, spent in ended.items() if pid != os.getpid() and _is_below(pid, parents, without)}
    return {pid: _used(pid) + spent for pid, spent in below.items()}


def _used(pid: int) -> float:
    """The processor time of a process by its own clock, which counts nanoseconds, while `stat` counts ticks of 10 ms.
    The id of the clock is that of clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0  # it has ended in the meantime


def _is_below(pid: int, parents: dict[int, int], without: Collection[int]) -> bool:
    while pid != os.getpid() and pid in parents and pid not in without:
        pid = parents[pid]
    return pid == os.getpid()


def _runs(pid: int, program: bytes) -> bool:
    try:
        return program in Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
    except OSError:
        return False
