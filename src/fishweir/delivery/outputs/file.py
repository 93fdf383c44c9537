"""`file 'PATH'`: chosen by the extension: `.rss` and `.xml` a feed, `.atom`, `.parquet`; lines of JSON otherwise.

With a stylesheet, what it makes of each result is an item of the feed, or is appended.
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
        """Lines can be taken back; the others know what they have."""
        return self._lines.position() if isinstance(self._made, Append) else None

    def rewind(self, position: int) -> None:
        self._lines.rewind(position)

    def deliver(self, results: Payload) -> None:
        self._made.deliver(results)
