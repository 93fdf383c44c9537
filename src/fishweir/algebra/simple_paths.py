"""Names of XML elements, and the simple paths of stream definitions: `/Quotes/Quote`, `Quote`, `//item`, `Quote/@id`.

This module works on text only, so that registering a stream does not load the XML library.
"""

from __future__ import annotations

import re
from functools import lru_cache

from fishweir.algebra.nodes import Step
from fishweir.errors import QueryError
from fishweir.records import dataclass

NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NAME_FOLLOWS = f"{NAME_START}0-9.\u00b7\u0300-\u036f\u203f-\u2040-"
"""The characters that XML allows at the start and in the rest of a name; `\\w` would allow more."""


@lru_cache(maxsize=4096)
def xml_name(name: str) -> str:
    """The name of a stream or column as an element name: other characters become `_`."""
    clean = re.sub(f"[^{NAME_FOLLOWS}]", "_", name)
    return clean if re.match(f"[{NAME_START}]", clean) else f"_{clean}"


@dataclass(frozen=True, slots=True)
class SimplePath:
    """Child steps, starting at the document element (`absolute`) or anywhere below."""

    steps: tuple[Step, ...]
    absolute: bool

    @property
    def last(self) -> str:
        return self.steps[-1].name


def parse_path(text: str) -> SimplePath:
    """`/a/b` starts at the document element, `a/b` and `//a/b` anywhere; `@x` only at the end."""
    relative = text.removeprefix("//")
    absolute = relative == text and text.startswith("/")
    names = relative.strip("/").split("/")
    if not all(re.fullmatch(r"@?[\w.:-]+|\*", name) for name in names) or any("@" in n for n in names[:-1]):
        raise QueryError(f"'{text}' is not a path: write /a/b, a/b, //a/b or a/@b")
    steps = tuple(Step(n.lstrip("@").rpartition(":")[2], "attribute" if n[0] == "@" else "child") for n in names)
    return SimplePath(steps, absolute)
