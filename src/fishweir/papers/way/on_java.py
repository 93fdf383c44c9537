"""Peers on the JVM: a program in `java/` that reads queries, and then documents, over pipes.

It needs `javac` and jars in the folder that an environment variable names; if they are missing, the peer is omitted.
The program is compiled on first use. Its processor time counts, since it is a child of this process.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fishweir.papers.way.peers import Answer, Missing, Pairs

PROGRAMS = Path(__file__).parent / "java"


@dataclass(frozen=True)
class Program:
    """The name of a program, the jars it needs, and the form in which it reads queries and documents."""

    name: str
    folder: str
    """The environment variable that names the folder of the jars."""
    jar: str
    """The jar that identifies the folder."""
    query: Callable[[dict[str, Any]], bytes]
    document: Callable[[Any], bytes]

    def command(self, classes: str) -> list[str]:
        """Compiles the program and returns its command. Raises Missing."""
        folder = os.environ.get(self.folder)
        if not folder or not list(Path(folder).glob(self.jar)):
            raise Missing(f"{self.folder} names no folder with its jars")
        if shutil.which("javac") is None:
            raise Missing("there is no javac")
        subprocess.run(["javac", "-cp", f"{folder}/*", "-d", classes, PROGRAMS / f"{self.name}.java"], check=True)
        return ["java", "-cp", f"{folder}/*:{classes}", self.name]

    @contextmanager
    def answering(self, rows: Sequence[dict[str, Any]]) -> Iterator[Answer]:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with tempfile.TemporaryDirectory() as classes, subprocess.Popen(self.command(classes), **pipes) as java:
            to, back = java.stdin, java.stdout
            assert to is not None
            assert back is not None
            to.write(struct.pack(">i", len(rows)))
            to.writelines(map(self.query, rows))
            to.flush()
            _numbers(back, 1)

            def answer(documents: Sequence[Any]) -> Pairs:
                to.write(struct.pack(">i", len(documents)))
                to.writelines(map(self.document, documents))
                to.flush()
                found: Pairs = set()
                for place in range(len(documents)):
                    (count,) = _numbers(back, 1)
                    found.update((rows[query]["name"], place) for query in _numbers(back, count))
                return found

            yield answer
            to.close()


def text(given: str) -> bytes:
    """The encoding that `DataInput.readUTF` reads."""
    return struct.pack(">H", len(given.encode())) + given.encode()


def numbers(*given: int) -> bytes:
    """The encoding that `DataInput.readInt` reads."""
    return struct.pack(f">{len(given)}i", *given)


def _numbers(stream: Any, count: int) -> tuple[int, ...]:
    return struct.unpack(f">{count}i", stream.read(4 * count))
