"""Contradictions between a stream's declaration and a query: patterns that can never occur.

In: a query of tree patterns and the declared streams. Out: the reason why none of its alternatives can match, or None.
The element of a tuple has the stream's name, its columns are below it, and nothing is below those. For `split on /a/b`
and `rows /a/b`, the elements down to `b` are known; patterns may begin at any of them, and at no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fishweir.algebra.alternatives import parts
from fishweir.algebra.nodes import PatternNode, Shape, Step, StreamDefinition
from fishweir.algebra.simple_paths import parse_path, xml_name
from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class Contradiction:
    """The reason, and the word of the query that it refers to."""

    reason: str
    word: str


@dataclass(frozen=True, slots=True)
class Declared:
    """The elements of a stream's documents from the outermost on; for tuples, also the columns below the last one."""

    stream: str
    names: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def contradiction(self, pattern: PatternNode) -> Contradiction | None:
        """The reason why a pattern cannot match any document of the stream."""
        step, last = pattern.step, len(self.names) - 1
        if step.is_deep:
            if not self.columns or step.name == "*":
                return None
            return self._below(pattern, last) if _passes(step, self.names[last]) else self._column(pattern)
        starts = [last] if step.axis == "item" else [i for i, name in enumerate(self.names) if _passes(step, name)]
        found = [self._below(pattern, start) for start in starts]
        if not starts:
            first = f"<{self.names[0]}>" if last == 0 else " or ".join(f"<{name}>" for name in self.names)
            reason = f"can never fire: patterns over {self.stream} begin with {first}, not with <{step.name}>"
            return Contradiction(reason, step.name)
        return None if None in found else found[0]

    def _below(self, node: PatternNode, place: int) -> Contradiction | None:
        return next((found for child in _required(node) if (found := self._child(child, place)) is not None), None)

    def _child(self, node: PatternNode, place: int) -> Contradiction | None:
        """The reason why a node cannot be below the element at a position."""
        if place + 1 == len(self.names):
            return self._column(node) if self.columns else None
        inner = self.names[place + 1]
        if node.step.axis != "child":
            return None
        if not _passes(node.step, inner):
            above = f"in {self.stream}, <{self.names[place]}> contains <{inner}>"
            return Contradiction(f"can never fire: {above}, not <{node.step.name}>", node.step.name)
        return self._below(node, place + 1)

    def _column(self, node: PatternNode) -> Contradiction | None:
        """The reason why a node is not a column. A time as a number refers to its column."""
        step = node.step
        if step.is_attribute or (step.name != "*" and step.name not in map(xml_name, self.columns)):
            shown, columns = f"@{step.name}" if step.is_attribute else step.name, ", ".join(self.columns)
            return Contradiction(f"reads {shown}; the columns of {self.stream} are {columns}", step.name)
        if node.children:
            (first, *_) = node.children
            return Contradiction(f"can never fire: columns of {self.stream} have no child elements", first.step.name)
        return None


def never_fires(shape: Shape, streams: Mapping[str, StreamDefinition]) -> Contradiction | None:
    """The reason why no alternative of a query can match, or none of what must not follow its documents."""
    shape = shape.unless or shape  # its first block is that of the query
    found = [next(_contradictions(part, streams), None) for part in parts(shape)]
    return None if None in found else found[0]


def _contradictions(shape: Shape, streams: Mapping[str, StreamDefinition]) -> Iterator[Contradiction]:
    for block in shape.blocks:
        declared = _declaration(streams.get(block.source.name)) if not block.source.dtd else None
        found = None if declared is None else declared.contradiction(block.pattern)
        if found is not None:
            yield found


def is_declared(stream: StreamDefinition | None) -> bool:
    """Whether a pattern over a stream can contradict its declaration, or refer to changes of its rows."""
    return stream is None or stream.is_tuples or stream.split is not None or stream.rows is not None


def _declaration(stream: StreamDefinition | None) -> Declared | None:
    if stream is None:
        return None
    if stream.is_tuples:
        return Declared(stream.name, (xml_name(stream.tuple_element),), tuple(name for name, _ in stream.columns))
    if stream.split is None and stream.rows is None:
        return None
    path = parse_path(stream.split or stream.rows or "")
    if not path.absolute or any(step.name == "*" for step in path.steps):
        return None
    return Declared(stream.name, tuple(step.name for step in path.steps))


def _passes(step: Step, name: str) -> bool:
    return step.name in ("*", name) and not step.is_attribute


def _required(node: PatternNode) -> Iterator[PatternNode]:
    """The children of a node, including those that must be absent: an impossible node is an error there, too."""
    yield from node.children
    for absence in node.absent:
        yield from absence.children
