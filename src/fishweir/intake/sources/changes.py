"""The change stream of a file that changes in place: for each change, a document with the new and the old row.

In: the log of the rows. Out: entries in the log of `NAME.changes`. The document is the row with three more children:
`change` (inserted, updated or deleted), `old` with the previous version of the row, and `ratio` with the quotient of
the new and the old value, for each child and attribute that is a number in both. A deleted row has only `change` and
`old`. The cursor is the number of the last row that was processed, so a restart neither loses nor repeats a change.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from lxml import etree

from fishweir.algebra.documents import Element, parse_document
from fishweir.algebra.nodes import OLD, RATIO, StreamDefinition
from fishweir.algebra.values import to_number
from fishweir.intake.log import StreamLog
from fishweir.intake.schema import log_batch
from fishweir.intake.sources.rows import DELETED
from fishweir.intake.sources.split import BATCH_DOCUMENTS, serialise

CHANGE = "change"
CURSOR = "row"


class ChangesSource:
    """Follows the log of the rows."""

    def __init__(self, stream: StreamDefinition, log: StreamLog, rows: StreamLog) -> None:
        self.stream, self.log, self.rows = stream, log, rows
        self.trouble: str | None = None
        self.working = False
        self._position: int = log.newest(CURSOR) or 0

    def poll(self, now: float) -> Iterator[int]:
        while (head := self.rows.head()) > self._position:
            upto = min(head, self._position + BATCH_DOCUMENTS)
            count = self._append(upto)
            self._position = upto
            self.working = self.rows.head() > upto
            yield count

    def _append(self, upto: int) -> int:
        columns: dict[str, list[object]] = {"body": [], "context": [], "timestamp": [], "arrival": []}
        for number in range(self._position + 1, upto + 1):
            row = self.rows.entry(number)
            if row.change is None or row.body is None:
                continue
            before = None if row.previous is None else parse_document(self.rows.entry(row.previous).body or b"")
            columns["body"].append(serialise(changed_row(parse_document(row.body), before, row.change)))
            columns["context"].append(row.context)
            columns["timestamp"].append(row.arrival if row.change == DELETED else row.timestamp)
            columns["arrival"].append(row.arrival)
        count = len(columns["body"])
        self.log.append(log_batch(self.stream, count, 0.0, columns), {CURSOR: upto})
        return count


def changed_row(row: Element, before: Element | None, change: str) -> Element:
    """The document of a change."""
    found = copy.deepcopy(row)
    found.tail = None
    if change == DELETED:
        found.clear()
    etree.SubElement(found, CHANGE).text = change
    if before is None:
        return found
    old = etree.SubElement(found, OLD)
    old.attrib.update(before.attrib)
    old.text = before.text
    old.extend(copy.deepcopy(child) for child in before)
    if change != DELETED:
        _add_ratios(etree.SubElement(found, RATIO), row, before)
    return found


def _add_ratios(ratio: Element, row: Element, before: Element) -> None:
    for name, value in row.attrib.items():
        if (shown := _divided(str(value), before.get(name))) is not None:
            ratio.set(name, shown)
    for child in row.iterchildren(etree.Element):
        previous = before.find(child.tag)
        if not len(child) and previous is not None and not len(previous):
            shown = _divided(child.text, previous.text)
            if shown is not None and ratio.find(child.tag) is None:
                etree.SubElement(ratio, child.tag).text = shown


def _divided(new: str | None, old: str | None) -> str | None:
    """The quotient as the shortest text; None unless both are numbers and the second is above 0."""
    dividend, divisor = to_number(new or ""), to_number(old or "")
    if dividend is None or divisor is None or divisor <= 0:
        return None
    return repr(dividend / divisor)
