"""The nodes that all languages compile to: frozen, hashable, without text positions.

A query reads one or more sources. For each source it has a *tree pattern*; pattern nodes may have a variable.
Conditions compare variables with constants or with each other. The output is built from variables and literal tags. A
tuple is a flat document, so the same nodes apply: the document element has the stream's name and each column is a
child.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from fishweir.algebra.returns import ForOutput, PathOutput, ReturnOutput
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.algebra.distinct import Distinct
    from fishweir.algebra.feeds import CreateFeed, DropFeed, FeedQuery, RegisterFeed, Selection, Subscribe, Unsubscribe
    from fishweir.algebra.formula import Formula
    from fishweir.algebra.path_queries import Paths
    from fishweir.algebra.preferences import Preference

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
OPPOSITES: dict[Operator, Operator] = {"=": "!=", "!=": "="}
"""For two texts, one operator of each pair holds. Ordered comparisons have no opposite: for a value that is not a
number, neither `<` nor `>=` holds."""
MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

Constant = str | float
"""A quoted constant is compared as a string, exactly; a bare number is compared as a number."""


OLD, RATIO = "old", "ratio"
"""Elements of change documents: the previous row, and the new values divided by the old ones."""

LAST = -1
Axis = Literal["child", "attribute", "descendant", "descendant-attribute", "item", "seconds"]
_MARKS = {"attribute": "@", "descendant": ".", "descendant-attribute": ".@"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step down the tree. `*` matches any name. Namespace None matches any namespace, the empty one means no
    namespace.

    A descendant is at any depth below; a descendant attribute is on the element or on one below it. An `item` is the
    document element, whatever its name, and its value is all of its text. `seconds` is a child with a time, as a
    number. A `position` counts from 1 among the siblings that pass the test; LAST is the last one, 0 any.
    """

    name: str
    axis: Axis = "child"
    namespace: str | None = None
    position: int = 0

    @property
    def is_attribute(self) -> bool:
        return self.axis in ("attribute", "descendant-attribute")

    @property
    def is_deep(self) -> bool:
        return self.axis in ("descendant", "descendant-attribute")

    def accepts(self, name: str, namespace: str) -> bool:
        """Whether the step accepts this local name and namespace."""
        return self.name in ("*", name) and self.namespace in (None, namespace)

    def __str__(self) -> str:
        space = "" if self.namespace is None else f"{{{self.namespace}}}"
        shown = f"{_MARKS.get(self.axis, '')}{space}{self.name}"
        place = "" if not self.position else f"[{'last()' if self.position == LAST else self.position}]"
        return f"seconds({shown})" if self.axis == "seconds" else f"{shown}{place}"


@dataclass(frozen=True, slots=True)
class PatternNode:
    """An element or attribute that must exist below its parent; siblings may bind the same node."""

    step: Step
    variables: tuple[str, ...] = ()
    children: tuple[PatternNode, ...] = ()
    absent: tuple[Absence, ...] = ()

    def walk(self) -> Iterator[PatternNode]:
        """The nodes that a document must have, without those of absences."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Absence:
    """What a pattern node must not have: there is no embedding of `children` below it for which all `conditions` hold.

    The conditions compare variables of the children or of the node itself. Nothing outside reads these variables. With
    a `test`, the absence applies only to nodes that pass it.
    """

    children: tuple[PatternNode, ...] = ()
    conditions: tuple[Comparison, ...] = ()
    test: Step | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What a pattern reads: a stream by name, or every stream that conforms to a DTD."""

    name: str
    dtd: bool = False

    def __str__(self) -> str:
        return f"* conforms to {self.name}" if self.dtd else self.name


@dataclass(frozen=True, slots=True)
class Block:
    """One source with the tree pattern over its documents."""

    source: Source
    pattern: PatternNode


@dataclass(frozen=True, slots=True)
class Slot:
    """A placeholder for a constant: queries that differ only in their constants share one shape."""

    index: int
    type: Literal["string", "number"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`; right is a slot (filled by the query's constants) or another variable. With a slot, op may also
    be the name of a condition on texts (operators.py)."""

    left: str
    op: str
    right: Slot | str

    @property
    def comparison(self) -> Operator:
        """The operator of a comparison of two variables, which is never a condition on texts."""
        return cast(Operator, self.op)


@dataclass(frozen=True, slots=True)
class SideWindow:
    """How long a document of one side of a join waits for later ones of the other sides.

    The slot contains seconds (infinity: unbounded), or with `rows` the number of newest documents that wait: those of a
    block's source, or those that a feed lets pass. None means that a document does not wait, so it must be the newest
    of its result.
    """

    end: Slot | None = None
    rows: bool = False


@dataclass(frozen=True, slots=True)
class VariableOutput:
    """A variable in an output: the element bound to it, or its content."""

    name: str
    content: bool = False


@dataclass(frozen=True, slots=True)
class TextOutput:
    text: str


@dataclass(frozen=True, slots=True)
class ElementOutput:
    """A literal tag. Attribute values and children are outputs, too."""

    tag: str
    attributes: tuple[tuple[str, AttributeOutput], ...] = ()
    children: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnOutput:
    """A column of an SQL select list: its name, its block and its path there."""

    name: str
    block: int
    path: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class AllColumnsOutput:
    """`*` or `R.*` of one block. A name that several blocks have is qualified with the block's name."""

    block: int
    name: str


AttributeOutput = VariableOutput | TextOutput | PathOutput
Output = VariableOutput | TextOutput | ElementOutput | PathOutput | ForOutput | ReturnOutput


NO_OUTPUT = (TextOutput(""),)
"""The output of a query that only determines which documents match."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A query without its constants. Filling the `slots` with constants makes it a query.

    Variables that start with `_` are anonymous: they stand for constants written inside a pattern. A shape with several
    blocks is a join with a window for each; conditions between variables of two blocks are its edges. `A JOIN{p, T} B`
    has the windows T and T, `A FOLLOWED BY{p, T} B` has T and none and is strict, SQL's `R [range a], S [rows b]` has a
    and b.
    """

    blocks: tuple[Block, ...]
    conditions: tuple[Comparison, ...]
    output: tuple[Output, ...]
    slots: tuple[Slot, ...] = ()
    windows: tuple[SideWindow, ...] = ()
    strict: bool = False
    """Whether documents of the same time do not join."""
    formula: Formula | None = None
    """For SQL joins, the condition on the columns of the blocks; see column_joins."""
    columns: tuple[ColumnOutput | AllColumnsOutput, ...] = ()
    """For SQL joins, the select list."""
    alternatives: tuple[Shape, ...] = ()
    """Shapes with the same sources, output and windows: the query also matches if one of them does."""
    unless: Shape | None = None
    """For the first block of `NOT FOLLOWED BY`, the join that finds matches: a document is a result once it can no
    longer have one. Both have the same slots."""
    distinct: Distinct | None = None
    """For queries over one document: which of the selected documents yield results."""

    @property
    def sources(self) -> list[Source]:
        """The sources of its blocks, and those of the documents that must not follow."""
        return [block.source for block in (*self.blocks, *(self.unless.blocks[1:] if self.unless else ()))]

    @property
    def output_variables(self) -> tuple[str, ...]:
        """Variables that the output mentions, each once, in order of first mention."""
        return tuple(dict.fromkeys(mentioned(self.output)))


def mentioned(outputs: tuple[Output, ...]) -> Iterator[str]:
    for part in outputs:
        match part:
            case VariableOutput(name):
                yield name
            case ElementOutput(_, attributes, children):
                yield from mentioned(tuple(value for _, value in attributes))
                yield from mentioned(children)
            case ReturnOutput(variables):
                yield from variables


@dataclass(frozen=True, slots=True)
class Action:
    """An action on results: the name of an output and its arguments. `address` and `host` are the destination, once it
    is known: deliveries to one address are ordered, and failing hosts are paused. With `own`, each query has separate
    deliveries."""

    name: str
    arguments: tuple[str, ...] = ()
    address: str = ""
    host: str = ""
    own: bool = False

    def __str__(self) -> str:
        return " ".join((self.name, *self.arguments))


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a query is active. Times are seconds since 1970 or None. `every` is 0 for on change, None if not given."""

    start: float | None = None
    every: float | None = None
    expire: float | None = None


ON_CHANGE = Schedule()

DERIVED = "join."
"""The prefix of the names of derived queries, which exist only for their readers."""


# The statements of a script. `text` is the statement without its `;`, `line` the line where it begins.


@dataclass(frozen=True, slots=True)
class CreateQuery:
    shape: Shape | FeedQuery | Selection | Paths
    constants: tuple[Constant, ...]
    name: str | None = None
    actions: tuple[Action, ...] = ()
    schedule: Schedule = ON_CHANGE
    text: str = ""
    line: int = 1
    preference: Preference | None = None
    feed: FeedQuery | None = None
    """For queries over feeds, the query before its views were expanded; its constants come first."""
    published: bool = False
    """Whether other queries may read it by name."""
    derived: bool = False
    """Whether it exists only for the query that reads it, like the first join of a chain."""


@dataclass(frozen=True, slots=True)
class DropQuery:
    name: str
    text: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class DropQueries:
    """Drops all queries whose names match a `like` pattern: `%` is any text, `_` any character."""

    pattern: str
    text: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """A stream as declared. `path` None means pushed. Paths keep their text; see algebra.documents."""

    name: str
    columns: tuple[tuple[str, str], ...] = ()
    path: str | None = None
    format: str | None = None
    split: str | None = None
    rows: str | None = None
    key: str | None = None
    every: float | None = None
    timestamp: str | None = None
    dtd: str | None = None
    shed_allowed: bool = False
    virtual: str | None = None
    """The published feed that the items come from."""
    stylesheet: str | None = None
    element: str | None = None
    """For tuples that a published query passes on unchanged: the name of their element in the original stream."""
    make_up: float | None = None
    """Seconds after arrival within which shed documents are still evaluated."""
    late: float | None = None
    """The allowed lateness in seconds; None if it is learned."""
    changes_of: str | None = None
    """For a stream of changes, the stream whose rows change."""

    @property
    def is_tuples(self) -> bool:
        return bool(self.columns)

    @property
    def tuple_element(self) -> str:
        """The name of the document element of a tuple as a flat document."""
        return self.element or self.name


def sources_of(stream: StreamDefinition) -> tuple[Source, ...]:
    """The sources by which queries can read a stream: the stream, and the DTD it conforms to."""
    own = (Source(stream.name),)
    return (*own, Source(stream.dtd, dtd=True)) if stream.dtd else own


@dataclass(frozen=True, slots=True)
class CreateStream:
    stream: StreamDefinition
    text: str = ""
    line: int = 1


Dropping: TypeAlias = "DropQuery | DropQueries | DropFeed"
Statement: TypeAlias = "CreateQuery | CreateStream | CreateFeed | RegisterFeed | Subscribe | Unsubscribe | Dropping"
