"""Crashes of processes and of the machine, at any system call: acknowledged entries keep their numbers and content.

A process dies during its n-th call, which may have been executed, partly executed or not executed. When the machine
stops, files lose what was not synchronized with the disk, in whole or in part, or have zeros there; the list of
segments, which is never synchronized, loses lines at its end.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fishweir.intake import StreamLog, appending, documents_batch
from fishweir.intake.segment_list import LIST
from tests.intake.support import stream

XML = stream()
CALLS = ("pwritev", "write", "link", "ftruncate", "truncate", "unlink", "fdatasync", "fsync", "rename")
REAL = {name: getattr(os, name) for name in CALLS}


class Died(BaseException):
    """The process does not exist any more."""


class Machine:
    """Executes system calls until a process dies, and knows what is on the disk."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.left: int | None = None
        """The number of calls before the process dies; None if it lives."""
        self.on_disk: dict[int, bytes] = {}
        """The synchronized content of files, by inode."""
        self.names: set[str] = set()
        """The synchronized names."""

    def call(self, name: str) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            if self.left is None:
                return self.executed(name, *arguments)
            self.left -= 1
            if self.left >= 0:
                return self.executed(name, *arguments)
            if self.left == -1:
                self._cut_off(name, *arguments)
            raise Died

        return called

    def executed(self, name: str, *arguments: Any) -> Any:
        done = REAL[name](*arguments)
        if name in ("fsync", "fdatasync"):
            path = Path(os.readlink(f"/proc/self/fd/{arguments[0]}"))
            if path.is_dir():
                self.names = set(os.listdir(path))
            else:
                self.on_disk[os.fstat(arguments[0]).st_ino] = path.read_bytes()
        return done

    def _cut_off(self, name: str, *arguments: Any) -> None:
        """Executes the call, a part of it, or nothing."""
        how = self.rng.random()
        if name == "pwritev" and how < 0.6:
            content = b"".join(map(bytes, arguments[1]))
            REAL[name](arguments[0], [content[: self.rng.randrange(len(content) + 1)]], arguments[2])
        elif name == "write" and how < 0.6:
            REAL[name](arguments[0], bytes(arguments[1])[: self.rng.randrange(len(arguments[1]) + 1)])
        elif how < 0.8:
            self.executed(name, *arguments)

    def stop(self) -> None:
        """What is left after the machine has stopped."""
        keeps_names = self.rng.random() < 0.5
        for path in list(self.folder.iterdir()):
            if path.name == LIST:
                self._stop_list(path)
            elif path.name not in self.names and not keeps_names and self.rng.random() < 0.5:
                path.unlink()
            elif path.suffix != ".incomplete":
                self._stop_file(path)
        self.on_disk = {path.stat().st_ino: path.read_bytes() for path in self.folder.iterdir()}
        self.names = set(os.listdir(self.folder))

    def _stop_list(self, path: Path) -> None:
        content, how = path.read_bytes(), self.rng.random()
        if how < 0.2:
            path.unlink()
        elif how < 0.8:
            cut = self.rng.randrange(len(content) + 1)
            path.write_bytes(content[:cut] + bytes(len(content) - cut if how < 0.4 else 0))

    def _stop_file(self, path: Path) -> None:
        content, kept = path.read_bytes(), self.on_disk.get(path.stat().st_ino, b"")
        if content == kept:
            return
        pairs = enumerate(zip(content, kept, strict=False))
        same = next((place for place, (one, other) in pairs if one != other), min(len(content), len(kept)))
        left = self.rng.choice([content, kept])
        if len(content) > same:
            cut = self.rng.randrange(same, len(content) + 1)
            left = content[:cut] + bytes(len(content) - cut if self.rng.random() < 0.4 else 0)
            if len(left) < len(kept):
                left = self.rng.choice([content, kept])
        with open(path, "r+b") as file:
            file.write(left)
            file.truncate(len(left))


class History:
    """Several objects on one log, which append, look and die."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.rng = machine, machine.rng
        self.logs: list[StreamLog] = []
        self.tried: list[str] = []
        self.acknowledged: dict[int, str] = {}

    def step(self, stops: bool) -> None:
        what = self.rng.random()
        if what < 0.12 and stops:
            self.machine.stop()
            self.logs.clear()
        elif what < 0.25 or not self.logs:
            self.may_die(0.3, 6, lambda: self.logs.append(StreamLog(self.machine.folder, XML)))
        elif what < 0.35:
            self.check(self.rng.choice(self.logs))
        else:
            log = self.rng.choice(self.logs)
            if not self.may_die(0.35, 9, lambda: self.append(log)):
                self.logs.remove(log)

    def may_die(self, share: float, most: int, act: Callable[[], None]) -> bool:
        """Returns whether the process has survived."""
        self.machine.left = self.rng.randrange(most) if self.rng.random() < share else None
        try:
            act()
        except Died:
            return False
        finally:
            self.machine.left = None
        return True

    def append(self, log: StreamLog) -> None:
        texts = [f"{len(self.tried) + i} {'x' * self.rng.choice((1, 300, 1500, 5000))}" for i in range(3)]
        texts = texts[: self.rng.choice((1, 2, 3))]
        self.tried += texts
        numbers = log.append(documents_batch(XML, texts, None, None, 1.0))
        assert self.acknowledged.keys().isdisjoint(numbers)
        self.acknowledged |= dict(zip(numbers, texts, strict=True))

    def check(self, log: StreamLog) -> None:
        found = [body for _, batch in log.read(0, log.head()) for body in batch.column("body").to_pylist()]
        texts = [body.decode() for body in found]
        assert len(set(texts)) == len(texts), "an entry is doubled"
        assert set(texts) <= set(self.tried)
        assert {number: texts[number - 1] for number in self.acknowledged} == self.acknowledged


@pytest.mark.parametrize("stops", [False, True])
def test_random_crashes(stops: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "LARGEST_SEGMENT", 3_000)
    monkeypatch.setattr(appending, "LARGEST_PACK", 9_000)
    acknowledged = 0
    for seed in range(int(os.environ.get("FISHWEIR_CRASHES", 60))):
        folder = tmp_path / "log"
        folder.mkdir()
        machine = Machine(folder, seed)
        history = History(machine)
        with monkeypatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, machine.call(name))
            for _ in range(40):
                history.step(stops)
            for log in (StreamLog(folder, XML), *history.logs):
                history.check(log)
        acknowledged += len(history.acknowledged)
        shutil.rmtree(folder)
    assert acknowledged > 500
