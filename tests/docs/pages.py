"""The examples of a page: its fenced blocks, in order, and how each kind of block is run.

A block with a title is a file. `sh`, `python` and the names of languages run. `output` is what the block before it must
have printed, or the error that it must have raised; `...` stands for anything. Other blocks only illustrate, as does
a block after a comment `<!-- not run: REASON -->`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fishweir

STATEMENTS = {"sql", "xscl", "niagaracq"}
RUN = STATEMENTS | {"sh", "python"}
_FENCE = re.compile(
    r"^(?P<skip><!-- not run: [^\n]*-->\n)?```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    text: str
    line: int
    title: str | None = None
    skipped: bool = False

    @property
    def runs(self) -> bool:
        return self.kind in RUN and self.title is None and not self.skipped


def blocks_of(page: str) -> Iterator[Block]:
    for match in _FENCE.finditer(page):
        line = page.count("\n", 0, match.start("text"))
        yield Block(match["kind"], match["text"], line, match["title"], match["skip"] is not None)


@dataclass(slots=True)
class PageRun:
    """Runs the blocks of one page in one folder, one after the other, as a reader would."""

    name: str
    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def run(self, blocks: list[Block]) -> None:
        for block, after in zip(blocks, [*blocks[1:], None], strict=True):
            if block.title is not None:
                self._write(block.title, block.text)
            elif block.kind == "output":
                self._compare(block)
            elif block.runs:
                self.printed = self._run(block)
                shown = after is not None and after.kind == "output"
                assert shown or block.kind not in STATEMENTS or not self.printed, f"{self.place(block)}: {self.printed}"

    def place(self, block: Block) -> str:
        return f"{self.name}, line {block.line}"

    def _run(self, block: Block) -> str:
        runners: dict[str, Callable[[Block], str]] = {"sh": self._shell, "python": self._python}
        return runners.get(block.kind, self._statements)(block)

    def _write(self, title: str, text: str) -> None:
        path = self.folder / title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _shell(self, block: Block) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=self.folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.place(block)}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def _python(self, block: Block) -> str:
        """Tracebacks name the page and its line: the code is compiled as if it stood there."""
        code = compile("\n" * block.line + block.text, self.name, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, self.names)
        return printed.getvalue()

    def _statements(self, block: Block) -> str:
        """Registers statements in the home of the page. Where they are refused, the message is what they print."""
        with fishweir.open(self.folder / "fishweir-home") as weir:
            try:
                weir.execute(block.text)
            except fishweir.FishweirError as error:
                return str(error)
        return ""

    def _compare(self, block: Block) -> None:
        parts = (re.escape(part) for part in block.text.strip().split("..."))
        assert re.fullmatch(".*?".join(parts), self.printed.strip(), re.DOTALL), (
            f"{self.place(block)}: the page shows\n{block.text}\nand this was printed\n{self.printed}"
        )
