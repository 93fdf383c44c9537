"""The nodes every language compiles to: frozen, hashable, free of text positions.

A query reads one or more sources. For each source it has a *tree pattern*; pattern nodes may carry
a variable. Conditions compare variables with constants or with each other. The output is built
from variables and literal tags. A tuple is a flat document, so the same nodes serve it: the
document element has the stream's name and each column is a child.
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
"""Of two texts one of them holds; of what may not be a number neither `<` nor `>=` need hold."""
MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

Constant = str | float
"""A quoted constant compares as a string, exactly; a bare number compares as a number."""


OLD, RATIO = "old", "ratio"
"""In the documents of changes: what the row was before, and its new values divided by the old ones."""

LAST = -1
Axis = Literal["child", "attribute", "descendant", "descendant-attribute", "item", "seconds"]
_MARKS = {"attribute": "@", "descendant": ".", "descendant-attribute": ".@"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step down the tree; `*` is any name. Namespace None is any, the empty one is none.

    A descendant is at any depth below; a descendant attribute is on the element or on one below it.
    An `item` is the document element, whatever its name, and its value is all of its text. `seconds` is a child that is
    a time, as a number. A `position` is that of an element among its siblings that pass the test, from 1 on; LAST
    is the last one, 0 any.
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
        """Whether a node's local name and namespace pass."""
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
        """The nodes that a document must have; those of absences are not among them."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Absence:
    """What a pattern node must not have: there is no way to lay `children` below it so that all `conditions` hold.

    The conditions compare variables of the children, or of the node itself. Nothing outside reads these variables.
    With a `test`, only a node that passes it must not have them.
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
    """A place for a constant: queries that differ only in their constants share one shape."""

    index: int
    type: Literal["string", "number"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`; right is a slot (filled by the query's constants) or another variable. With a slot, op may also
    name a condition on texts (operators.py)."""

    left: str
    op: str
    right: Slot | str

    @property
    def comparison(self) -> Operator:
        """The operator if it is not a condition on texts, as between two variables."""
        return cast(Operator, self.op)


@dataclass(frozen=True, slots=True)
class SideWindow:
    """How long a document of one side of a join waits for later ones of the other sides.

    The slot holds seconds (infinity: without end), or with `rows` how many of the newest documents wait: those of a
    block's source, or those that come by a feed. None: a document does not wait, so that it must be the newest of its
    result.
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
    """A literal tag; attribute values and children are outputs themselves."""

    tag: str
    attributes: tuple[tuple[str, AttributeOutput], ...] = ()
    children: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnOutput:
    """A column of SQL's select list: its name, the block it is of and its path there."""

    name: str
    block: int
    path: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class AllColumnsOutput:
    """`*` or `R.*` of one block; a name that several blocks have gets the block's before it."""

    block: int
    name: str


AttributeOutput = VariableOutput | TextOutput | PathOutput
Output = VariableOutput | TextOutput | ElementOutput | PathOutput | ForOutput | ReturnOutput


@dataclass(frozen=True, slots=True)
class Unless:
    """What a document must not be followed by within some seconds: one that makes it a result of another query."""

    query: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Shape:
    """A query without its constants; `slots` constants make it a query.

    Variables that start with `_` are anonymous: they stand for constants written inside a pattern.
    With several blocks it is a join with a window for each; conditions between variables of two are its edges.
    `A JOIN{p, T} B` has the windows T and T, `A FOLLOWED BY{p, T} B` has T and none and is strict, SQL's
    `R [range a], S [rows b]` has a and b.
    """

    blocks: tuple[Block, ...]
    conditions: tuple[Comparison, ...]
    output: tuple[Output, ...]
    slots: tuple[Slot, ...] = ()
    windows: tuple[SideWindow, ...] = ()
    strict: bool = False
    """Whether documents of the same time do not join."""
    formula: Formula | None = None
    """Of a join by SQL, the condition on the columns of its blocks; see column_joins."""
    columns: tuple[ColumnOutput | AllColumnsOutput, ...] = ()
    """Of a join by SQL, its select list."""
    alternatives: tuple[Shape, ...] = ()
    """Shapes with the same sources, output and windows: the query also holds where one of them does."""
    unless: Unless | None = None
    """Of the first block of `NOT FOLLOWED BY`: its documents are published once they are known to have no match."""
    distinct: Distinct | None = None
    """Of a query over one document: which of the documents it selects give results."""

    @property
    def sources(self) -> list[Source]:
        return [block.source for block in self.blocks]

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
    """When a query works. Times are seconds since 1970 or None; `every` 0 means on change, None that none is given."""

    start: float | None = None
    every: float | None = None
    expire: float | None = None


ON_CHANGE = Schedule()

DERIVED = "join."
"""The prefix of the names of derived queries, which exist only for their readers."""


# Statements: what a script is made of. `text` is the statement without its `;`, `line` where it
# begins in its script.


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
    """Of a query over feeds, what it was before its views were folded in; its constants come first."""
    published: bool = False
    """Whether others may read it by its name."""
    derived: bool = False
    """Whether it is only there for the query that reads it, as the first join of a chain is."""


@dataclass(frozen=True, slots=True)
class DropQuery:
    name: str
    text: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class DropQueries:
    """Drops all queries whose names match a pattern as `like` has it: `%` any text, `_` any character."""

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
    """The published feed whose items these are."""
    stylesheet: str | None = None
    element: str | None = None
    """Of tuples that a published query passes on as they are: the name of their element, where they came from."""
    make_up: float | None = None
    """Seconds after arrival within which shed documents are still evaluated."""
    late: float | None = None
    """The allowed lateness in seconds; None if it is learned."""
    changes_of: str | None = None
    """The stream whose rows' changes these are."""

    @property
    def is_tuples(self) -> bool:
        return bool(self.columns)

    @property
    def tuple_element(self) -> str:
        """A tuple is a flat document: the name of its element."""
        return self.element or self.name


def sources_of(stream: StreamDefinition) -> tuple[Source, ...]:
    """What queries may name to read a stream: itself, and the DTD that it conforms to."""
    own = (Source(stream.name),)
    return (*own, Source(stream.dtd, dtd=True)) if stream.dtd else own


@dataclass(frozen=True, slots=True)
class CreateStream:
    stream: StreamDefinition
    text: str = ""
    line: int = 1


Dropping: TypeAlias = "DropQuery | DropQueries | DropFeed"
Statement: TypeAlias = "CreateQuery | CreateStream | CreateFeed | RegisterFeed | Subscribe | Unsubscribe | Dropping"
