"""A peer on the JVM: Lucene Monitor, which stores queries in an index of their terms.

It needs `javac` and the jars of Lucene in the folder that FISHWEIR_LUCENE names: core, monitor, memory, queries and
analysis-common of one version. Where they are missing it is left out. The program is compiled when it is first used and
answers over pipes; its processor time counts, since it is a child of this process.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fishweir.papers.way.peers import Answer, Missing, Pairs, Peer

JARS = "FISHWEIR_LUCENE"
PROGRAM = Path(__file__).parent / "java" / "LuceneMonitor.java"


@contextmanager
def by_lucene(rows: Sequence[dict[str, Any]]) -> Iterator[Answer]:
    folder = os.environ.get(JARS)
    if not folder or not list(Path(folder).glob("lucene-monitor-*.jar")):
        raise Missing(f"{JARS} names no folder with its jars")
    if shutil.which("javac") is None:
        raise Missing("there is no javac")
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-cp", f"{folder}/*", "-d", classes, str(PROGRAM)], check=True)
        command = ["java", "-cp", f"{folder}/*:{classes}", "LuceneMonitor"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as java:
            to, back = java.stdin, java.stdout
            assert to is not None
            assert back is not None
            to.write(struct.pack(">i", len(rows)))
            to.writelines(_text(row[name]) for row in rows for name in ("a", "b"))
            to.flush()
            _numbers(back, 1)

            def answer(documents: Sequence[str]) -> Pairs:
                to.write(struct.pack(">i", len(documents)))
                to.writelines(_text(re.sub("<[^>]*>", "", document)) for document in documents)
                to.flush()
                found: Pairs = set()
                for place in range(len(documents)):
                    (count,) = _numbers(back, 1)
                    found.update((rows[query]["name"], place) for query in _numbers(back, count))
                return found

            yield answer
            to.close()


def _text(text: str) -> bytes:
    """As `DataInput.readUTF` reads it."""
    return struct.pack(">H", len(text.encode())) + text.encode()


def _numbers(stream: Any, count: int) -> tuple[int, ...]:
    return struct.unpack(f">{count}i", stream.read(4 * count))


LUCENE = Peer("Lucene Monitor", by_lucene, most=100_000)
