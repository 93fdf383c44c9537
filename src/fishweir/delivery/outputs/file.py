"""`file 'PATH'`: the extension determines the format: `.rss` and `.xml` a feed, `.atom`, `.parquet`; JSON lines
otherwise.

With a stylesheet, its output for each result becomes an item of the feed, or is appended.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fishweir.delivery.outputs.append import Append, FileTarget
from fishweir.delivery.outputs.atom import Atom
from fishweir.delivery.outputs.parquet import Parquet
from fishweir.delivery.outputs.rss import Rss
from fishweir.delivery.payload import Payload

BY_SUFFIX: dict[str, Any] = {".rss": Rss, ".xml": Rss, ".atom": Atom, ".parquet": Parquet}


class File(FileTarget):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._lines = Append(path)
        self._made = BY_SUFFIX.get(Path(path).suffix.lower(), Append)(path)

    def position(self) -> int | None:
        """The position of a file of lines, which can be rewound; the other formats recognize repetitions."""
        return self._lines.position() if isinstance(self._made, Append) else None

    def rewind(self, position: int) -> None:
        self._lines.rewind(position)

    def deliver(self, results: Payload) -> None:
        self._made.deliver(results)
