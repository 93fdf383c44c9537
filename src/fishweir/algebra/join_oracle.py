"""The naive evaluator of joins: tries every combination of documents and embeddings. Obviously correct, never fast.

In: a join's shape, its constants, the documents of each block's source in arrival order. Out: one result for each
combination of documents and each binding of the result's variables. With t the time of the newest document, each other
document must be in its own window at t: at most the window's seconds before t, or among the newest rows of its stream,
as seen from each of the newest documents.

For semi-joins that collect, in: a selection with joins, its constants, the items of all sources with their arrival
times. Out: the items that are results, each with everything it joins in its windows when it arrives. Every join
strategy and the Spark job are compared with this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

from fishweir.algebra.alternatives import parts
from fishweir.algebra.column_joins import block_of, is_between, stripped
from fishweir.algebra.documents import Document, Element, values_at
from fishweir.algebra.feeds import Annotation, Filter, Selection
from fishweir.algebra.formula import And, Atom, Formula, Not, Or
from fishweir.algebra.joins import named, row_variables
from fishweir.algebra.nodes import Comparison, Constant, PatternNode, Shape, Slot, Source
from fishweir.algebra.operators import find_condition
from fishweir.algebra.oracle import NOWHERE, Node, Order, embeddings, holds, item_holds, values_compare
from fishweir.records import dataclass

Binding = Mapping[str, Node]


@dataclass(frozen=True, slots=True)
class JoinResult:
    """A document for each block, and the nodes of the result."""

    sides: tuple[Document, ...]
    binding: Binding

    @property
    def documents(self) -> list[str]:
        """The document ids in time order; equal times in the order of the blocks."""
        return [document.id for document in sorted(self.sides, key=lambda d: d.timestamp)]

    @property
    def timestamp(self) -> float:
        return max(document.timestamp for document in self.sides)


def evaluate_join(
    shape: Shape, constants: Sequence[Constant], streams: Sequence[Sequence[Document]]
) -> list[JoinResult]:
    """The results over all documents of the sources, one sequence per block. A document can be used for one block
    only."""
    over = result_variables(shape)
    bound = [_bindings(shape, side, constants, documents) for side, documents in enumerate(streams)]
    found: list[JoinResult] = []
    for some in product(*bound):
        documents = tuple(document for document, _ in some)
        different = len({id(document.root) for document in documents}) == len(documents)
        if different and _in_windows(shape, constants, documents, streams):
            found += _results(shape, over, constants, documents, [bindings for _, bindings in some])
    return found


def join_results(shape: Shape, constants: Sequence[Constant], documents: Sequence[Document]) -> Iterator[JoinResult]:
    """The results of some documents, one for each block, regardless of their timestamps."""
    bound = [_bindings(shape, side, constants, [document]) for side, document in enumerate(documents)]
    bindings = [bindings for ((_, bindings),) in bound]
    return _results(shape, result_variables(shape), constants, tuple(documents), bindings)


def _bindings(
    shape: Shape, side: int, constants: Sequence[Constant], documents: Sequence[Document]
) -> list[tuple[Document, list[list[Binding]]]]:
    """Each document with the embeddings of one block in it, per alternative."""
    patterns = [(part, _pattern(part, side)) for part in parts(shape)]
    return [(document, [list(_side(*one, constants, document)) for one in patterns]) for document in documents]


def _side(shape: Shape, pattern: PatternNode, constants: Sequence[Constant], document: Document) -> Iterator[Binding]:
    for binding in embeddings(pattern, document, constants):
        if _hold(shape.conditions, binding, constants):
            yield binding


def _results(
    shape: Shape,
    over: Sequence[str],
    constants: Sequence[Constant],
    documents: tuple[Document, ...],
    sides: Sequence[list[list[Binding]]],
) -> Iterator[JoinResult]:
    roots = [document.root for document in documents]
    if shape.formula is not None and not combination_holds(shape.formula, constants, roots):
        return
    found: dict[tuple[Order, ...], Binding] = {}
    for part, *bindings in zip(parts(shape), *sides, strict=True):
        for some in product(*bindings):
            whole = {name: node for binding in some for name, node in binding.items()}
            if _hold(part.conditions, whole, constants):
                found.setdefault(tuple(whole[name].order if name in whole else NOWHERE for name in over), whole)
    if not found:
        return
    names = over if shape.alternatives else _shown([_pattern(shape, i) for i in range(len(sides))], over)
    for key in sorted(found):
        yield JoinResult(documents, {name: found[key][name] for name in names if name in found[key]})


def result_variables(shape: Shape) -> Sequence[str]:
    """The variables of a result. With alternatives, these are the output variables, which all alternatives have."""
    if shape.alternatives:
        return shape.output_variables
    return [name for side in range(len(shape.blocks)) for name in row_variables(shape, side)]


@lru_cache(maxsize=1024)
def _pattern(shape: Shape, side: int) -> PatternNode:
    return named(shape.blocks[side].pattern, f"_n{side}")


def _hold(conditions: Sequence[Comparison], binding: Binding, constants: Sequence[Constant]) -> bool:
    """Whether all conditions hold whose variables are both bound."""
    bound = [c for c in conditions if c.left in binding and (isinstance(c.right, Slot) or c.right in binding)]
    return all(holds(condition, binding, constants) for condition in bound)


def _shown(patterns: Sequence[PatternNode], over: Sequence[str]) -> list[str]:
    """The variables of a result: all names of its nodes."""
    nodes = (node for pattern in patterns for node in pattern.walk())
    return [name for node in nodes if node.variables[0] in over for name in node.variables]


def _in_windows(
    shape: Shape, constants: Sequence[Constant], some: Sequence[Document], streams: Sequence[Sequence[Document]]
) -> bool:
    time = max(document.timestamp for document in some)
    if shape.strict and len({document.timestamp for document in some}) < len(some):
        return False
    newest = [document for document in some if document.timestamp == time]
    for window, own, every in zip(shape.windows, some, streams, strict=True):
        end = -1.0 if window.end is None else float(constants[window.end.index])
        if window.rows:
            if any(newer(own, later, every) >= end for later in newest):
                return False
        elif own.timestamp != time and time - own.timestamp > end:
            return False
    return True


def newer(own: Document, later: Document, documents: Sequence[Document]) -> int:
    """How many documents of the source of `own` are newer than `own` when `later` is current, including `later` if it
    has the same source. The order is by time, then by arrival. Documents with the same time as a document of another
    source are before it, unless `own` is one of them."""
    order = sorted(documents, key=lambda document: document.timestamp)
    place, end = (next((i for i, document in enumerate(order) if document is one), None) for one in (own, later))
    assert place is not None, "not a document of its source"
    if end is not None:
        return max(0, end - place)
    if own.timestamp == later.timestamp:
        return 0
    return sum(document.timestamp <= later.timestamp for document in order[place + 1 :])


def combination_holds(
    formula: Formula, constants: Sequence[Constant], roots: Sequence[Element], columns: bool = True
) -> bool:
    """Whether documents, one of each block, satisfy a join's formula, atom by atom. A column has one value, the first;
    otherwise, any value at a path may match."""
    match formula:
        case And(parts):
            return all(combination_holds(part, constants, roots, columns) for part in parts)
        case Or(parts):
            return any(combination_holds(part, constants, roots, columns) for part in parts)
        case Not(part):
            return not combination_holds(part, constants, roots, columns)
    if not is_between(formula):
        return item_holds(stripped(formula), constants, roots[block_of(formula.path)], columns)
    assert isinstance(formula.right, tuple)
    most = 1 if columns else None
    left, right = (values_at(roots[block_of(path)], path[1:])[:most] for path in (formula.path, formula.right))
    return any(_compare(a, formula, b, constants) for a in left for b in right)


def _compare(left: str, atom: Atom, right: str, constants: Sequence[Constant]) -> bool:
    on_texts = find_condition(atom.op)
    if on_texts is None:
        return values_compare(left, atom.op, right, atom.part)
    if on_texts.share is not None:
        share = on_texts.share if atom.threshold is None else constants[atom.threshold.index]
        right = f"{share}\t{right}"
    return on_texts.meaning(left, right)


@dataclass(frozen=True, eq=False)
class Arrival:
    """An item: its source, the index of the source, its number there, and its arrival time."""

    source: Source
    stream: int
    number: int
    arrived: float
    document: Document

    @property
    def order(self) -> tuple[float, int, int]:
        """The sort key: time, then stream and number."""
        return (self.document.timestamp, self.stream, self.number)


@dataclass(frozen=True)
class Annotated:
    """A result: the item, and for each join the items of its annotation in order."""

    item: Arrival
    annotation: dict[int, tuple[Arrival, ...]]


def annotate(selection: Selection, constants: Sequence[Constant], arrivals: Sequence[Arrival]) -> Iterator[Annotated]:
    """The results of a join that collects, among all items that arrived."""
    for item in arrivals:
        passed = [part for part in selection.filters if _passes(part, constants, item)]
        joined = {
            join: tuple(_joined_items(selection.joins[join], constants, item, arrivals))
            for join in sorted({join for part in passed for join in part.joins})
        }
        held = [part for part in passed if all(joined[join] for join in part.joins)]
        if held:
            shown = sorted({join for part in held for join in part.joins})
            yield Annotated(item, {join: joined[join] for join in shown})


def _passes(part: Filter, constants: Sequence[Constant], item: Arrival) -> bool:
    return part.source == item.source and item_holds(part.formula, constants, item.document.root)


def _joined_items(
    join: Annotation, constants: Sequence[Constant], item: Arrival, arrivals: Sequence[Arrival]
) -> Iterator[Arrival]:
    for other in _window(join, constants, item, arrivals):
        if combination_holds(join.condition, constants, (item.document.root, other.document.root), columns=False):
            yield other


def _window(
    join: Annotation, constants: Sequence[Constant], item: Arrival, arrivals: Sequence[Arrival]
) -> list[Arrival]:
    """The content of the window when the item arrives, oldest first, without the item itself."""
    time = item.document.timestamp
    in_window = [
        one
        for one in arrivals
        if one is not item and one.arrived <= item.arrived and one.document.timestamp <= time
        if any(_passes(part, constants, one) for part in join.filters)
    ]
    in_window.sort(key=lambda one: one.order)
    assert join.window.end is not None, "a feed's window has a length"
    reach = float(constants[join.window.end.index])
    return (
        in_window[-int(reach) :] if join.window.rows else [o for o in in_window if time - o.document.timestamp <= reach]
    )
