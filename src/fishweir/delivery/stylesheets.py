"""XSLT stylesheets of feeds: compiled once, applied to items, without access to files or the network.

In: the path of a stylesheet. Out: a function from an item to a document. A missing or broken stylesheet raises a
QueryError with file and line. An item on which it fails raises a BadItem with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lxml import etree

from fishweir.algebra.construct import element_text
from fishweir.algebra.documents import BadDocument, new_parser, parse_document, tuple_to_document
from fishweir.errors import QueryError

NOWHERE = etree.XSLTAccessControl(  # its arguments are missing in the stubs
    read_network=False,
    write_network=False,
    read_file=False,
    write_file=False,
    create_dir=False,  # type: ignore[call-arg]
)


class BadItem(ValueError):
    """An item that cannot be transformed. The message is the reason for setting it aside."""


class Stylesheet:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            text = self.path.read_bytes()
        except OSError as error:
            raise QueryError(f"the stylesheet {self.path} cannot be read: {error.strerror or error}") from error
        try:
            self._tree = etree.fromstring(text, new_parser())
            self._transform = etree.XSLT(self._tree, access_control=NOWHERE)
        except (etree.XMLSyntaxError, etree.XSLTParseError, ValueError) as error:
            raise QueryError(f"the stylesheet {self.path}{_line(error)}: {_reason(error)}") from error

    @property
    def media(self) -> str:
        """The output type: text, html or xml."""
        method = self._tree.xpath("string(/*/*[local-name() = 'output']/@method)")
        return str(method).lower() if str(method).lower() in ("text", "html") else "xml"

    def render(self, item: str | Mapping[str, Any]) -> str:
        """The output of the stylesheet for a result, in any format; a tuple is a document with its columns."""
        text = element_text(tuple_to_document("result", item)) if isinstance(item, Mapping) else item
        try:
            return str(self._transform(parse_document(text.encode())))
        except (etree.XSLTApplyError, etree.XSLTError, BadDocument, ValueError) as error:
            raise BadItem(f"the stylesheet {self.path.name} fails: {_reason(error)}") from error

    def apply(self, item: str | bytes) -> bytes:
        """The document that results from applying the stylesheet to an item."""
        try:
            body = item.encode() if isinstance(item, str) else item
            result = self._transform(parse_document(body))
            root = result.getroot()
        except (etree.XSLTApplyError, etree.XSLTError, BadDocument, ValueError) as error:
            raise BadItem(f"the stylesheet {self.path.name} fails: {_reason(error)}") from error
        if root is None:
            raise BadItem(f"the stylesheet {self.path.name} does not produce an element")
        document: bytes = etree.tostring(root, encoding="utf-8", with_tail=False)
        return document


def _line(error: Exception) -> str:
    """The position of the error, from the libxml2 exception or its log."""
    log = getattr(error, "error_log", None)
    line = getattr(error, "lineno", None) or next((entry.line for entry in log or () if entry.line), None)
    return f", line {line}" if line else ""


def _reason(error: Exception) -> str:
    log = getattr(error, "error_log", None)
    messages = [entry.message for entry in log or () if entry.message]
    return messages[0] if messages else str(error) or type(error).__name__
