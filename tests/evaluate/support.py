"""Queries as rows of the plan, witnesses of plain values, and a plan's matches as plain tuples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import Constant, CreateQuery, Operator, Source, Step
from fishweir.algebra.normal import ConstantCondition, Template, TemplateNode, to_normal
from fishweir.evaluate.arrays import to_column
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import Segment
from fishweir.evaluate.query_rows import QueryRow
from fishweir.evaluate.select.anchors import Anchor
from fishweir.evaluate.select.constant_tables import Table, build_table
from fishweir.evaluate.witnesses.path_tables import PathTable
from fishweir.languages.script import parse_script

SOURCE = Source("s")
STEPS = (Step("r"), Step("v"))


def queries(*texts: str) -> list[CreateQuery]:
    return [q for text in texts for q in parse_script(text) if isinstance(q, CreateQuery)]


def plan_rows(created: Sequence[CreateQuery], first: int = 1) -> Iterator[QueryRow]:
    for number, query in enumerate(created, first):
        normal = to_normal(query.shape)
        yield number, normal.template, [query.constants[i] for i in normal.slots]


def table_of(ops: Sequence[Operator], kind: str, constants: Sequence[Sequence[Constant]]) -> Table:
    """A table over r.v whose queries have all their conditions in the anchor, numbered from 0."""
    conditions = tuple(ConstantCondition(1, op, kind, i) for i, op in enumerate(ops))
    nodes = (TemplateNode(-1, STEPS[0]), TemplateNode(0, STEPS[1]))
    template = Template(SOURCE, nodes, conditions, (), (1,))
    columns = [to_column([row[i] for row in constants], kind) for i in range(len(ops))]
    anchor = Anchor(1, tuple(range(len(ops))))
    return build_table(template, anchor, np.arange(len(constants)), columns)


def values(texts: Sequence[str]) -> PathTable:
    """Witnesses of r.v: one document per text."""
    size = len(texts)
    nodes = np.tile(np.array([[0, 1]], dtype=np.int64), (size, 1))
    return PathTable(np.arange(size), nodes, pa.array(list(texts), type=pa.large_string()))


def fired(table: Table, texts: Sequence[str]) -> list[tuple[int, int]]:
    """(row, query) pairs of a lookup, sorted, with duplicates."""
    found = table.index.look_up(values(texts))
    pairs = [
        (int(row), int(number))
        for row, lo, hi in zip(found.row, found.lo, found.hi, strict=True)
        for number in table.members[lo:hi]
    ]
    return sorted(pairs)


def expanded(table: Table, matches: Matches) -> list[tuple[int, int, tuple[int, ...]]]:
    """(query, document, output nodes) of some matches."""
    found = []
    matches = matches.listed()
    for row in range(len(matches)):
        spans = matches.slices[matches.slice_offsets[row] : matches.slice_offsets[row + 1]].reshape(-1, 2)
        numbers = [int(n) for lo, hi in spans for n in table.members[lo:hi]]
        numbers += matches.members[matches.member_offsets[row] : matches.member_offsets[row + 1]].tolist()
        found += [(n, int(matches.documents[row]), tuple(matches.nodes[row].tolist())) for n in numbers]
    return found


def evaluated(
    segments: Sequence[Segment], texts: Sequence[str], source: str = "s"
) -> list[tuple[int, int, tuple[int, ...]]]:
    """(query, document, output nodes) that a plan finds in some documents, sorted, with duplicates."""
    plan = plan_of(segments, [Source(source)])
    walk = plan.start()
    for i, text in enumerate(texts):
        walk.add(i, parse_document(text.encode()))
    tables = {(s.id, i): t for s in segments for i, t in enumerate(s.groups)}
    found = [
        one
        for segment, index, matches in plan.match(walk.tables())
        for one in expanded(tables[segment, index], matches)
    ]
    return sorted(found)


def document(text: str, context: tuple[str, ...] = ()) -> Document:
    return Document("d", 0.0, parse_document(text.encode()), context)
