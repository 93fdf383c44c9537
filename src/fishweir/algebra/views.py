"""Views over views: expands a published feed to its sources, through any number of views.

In: definitions by name. Out: the filters on the sources, with one list of constants. Views are resolved from the
sources up, each once, without recursion, so they may be stacked to any depth. A feed that joins keeps its items, and
conditions cannot read annotations, so its joins are expanded along with its filters. Some feeds are not expanded but
read as sources: a feed that joins, inside a window (the window contains the published items) or if the reader has
`distinct` (which chooses among documents); and a feed with `distinct`, whose items are determined before the conditions
of its readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import replace

from fishweir.algebra.feeds import (
    Annotation,
    FeedJoin,
    FeedQuery,
    Filter,
    join_filters,
    leaves,
    to_filters,
)
from fishweir.algebra.formula import And, Atom, Formula, Not, Or, paths_of
from fishweir.algebra.nodes import Constant, Slot
from fishweir.errors import QueryError
from fishweir.records import dataclass

LARGEST = 100_000
"""The maximum number of filters that a feed may expand to: unions of unions of the same views double at every level."""

ANNOTATION = "annotation"
"""The element that a join adds to an item, with the items it found."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A feed's query with its constants."""

    query: FeedQuery
    constants: tuple[Constant, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """Filters on sources; their slots count in `constants`, the feed's own first, then its views'. So do `joins`."""

    filters: tuple[Filter, ...]
    constants: tuple[Constant, ...] = ()
    joins: tuple[Annotation, ...] = ()


class FeedError(QueryError):
    """A definition names a feed that cannot be used; the message points to `feed`."""

    def __init__(self, message: str, feed: str) -> None:
        super().__init__(message)
        self.feed = feed


Definitions = Callable[[str], Publication | None]
"""The publication of a name; None for a source. Raises QueryError if the name is unknown."""


def definitions(published: MutableMapping[str, Publication], sources: Callable[[str], bool]) -> Definitions:
    """Looks a name up in a mapping; rejects a name that is neither published nor a source."""

    def find(name: str) -> Publication | None:
        if name not in published and not sources(name):
            raise FeedError(f"there is no feed '{name}'", name)
        return published.get(name)

    return find


def resolve(name: str, find: Definitions, memo: MutableMapping[str, Resolved] | None = None) -> Resolved:
    """The sources of a published feed. Raises QueryError for a cycle or an unknown feed. `memo` caches resolved feeds;
    after changing a definition, remove the feeds that `readers` returns.
    """
    resolved = {} if memo is None else memo
    for feed in dependencies(name, find):
        if feed not in resolved:
            publication = find(feed)
            assert publication is not None, "dependencies returns only publications"
            resolved[feed] = _resolved(feed, publication, find, resolved)
    return resolved[name]


def dependencies(name: str, find: Definitions) -> list[str]:
    """A published feed and all feeds that it reads, directly or not, each after the ones it reads."""
    if find(name) is None:
        raise QueryError(f"the feed '{name}' is a source, not a view")
    done: dict[str, None] = {}
    path: dict[str, Iterator[str]] = {name: reads(find(name))}
    while path:
        current = next(reversed(path))
        for read in path[current]:
            if read in path:
                names = list(path)
                cycle = " -> ".join([*names[names.index(read) :], read])
                raise FeedError(f"the feeds read each other: {cycle}", [*names, read][1])
            publication = None if read in done else find(read)
            if publication is not None:
                path[read] = reads(publication)
                break
        else:
            del path[current]
            done[current] = None
    return list(done)


def reads(publication: Publication | None) -> Iterator[str]:
    """The names in the from clause and in the joins."""
    if publication is None:
        return
    query = publication.query
    for feed in (query.main, *(join.secondary for join in query.joins)):
        yield from (leaf.name for leaf, _ in leaves(feed))


def readers(name: str, published: MutableMapping[str, Publication]) -> set[str]:
    """The published feeds that read this one, directly or through others."""
    above: dict[str, set[str]] = {}
    for feed, publication in published.items():
        for read in reads(publication):
            above.setdefault(read, set()).add(feed)
    found: set[str] = set()
    border = [name]
    while border:
        new = above.get(border.pop(), set()) - found
        found |= new
        border += new
    return found


def _resolved(
    name: str, publication: Publication, find: Definitions, resolved: MutableMapping[str, Resolved]
) -> Resolved:
    """Resolves one level: the feed's own slots and joins, followed by those of each view it reads."""
    query, constants = publication.query, list(publication.constants)
    inner: list[Annotation] = []
    moved: dict[str, tuple[Filter, ...]] = {}

    def views(read: str) -> tuple[Filter, ...] | None:
        inner_query = find(read)
        if inner_query is None or inner_query.query.distinct is not None:
            return None
        if query.distinct is not None and resolved[read].joins:
            return None
        if read not in moved:
            by, after = len(constants), len(query.joins) + len(inner)
            moved[read] = tuple(_moved(f, by, after) for f in resolved[read].filters)
            inner.extend(_annotation(join, by) for join in resolved[read].joins)
            constants.extend(resolved[read].constants)
        return moved[read]

    def held(read: str) -> tuple[Filter, ...] | None:
        return None if read in resolved and resolved[read].joins else views(read)

    def secondary(join: FeedJoin) -> Annotation:
        return Annotation(join.window, join_filters(query, join, held), join.variable, join.condition)

    size = sum(len(resolved[leaf.name].filters) if leaf.name in resolved else 1 for leaf, _ in leaves(query.main))
    if size > LARGEST:
        raise QueryError(f"the feed '{name}' expands to {size:,} sources with conditions, more than {LARGEST:,}")
    filters, own = to_filters(query, views), tuple(secondary(join) for join in query.joins)
    _check_annotations(query, resolved)
    return Resolved(filters, tuple(constants), (*own, *inner))


def _check_annotations(query: FeedQuery, resolved: MutableMapping[str, Resolved]) -> None:
    """Rejects conditions on annotations: conditions are evaluated on the original items, which have none yet."""
    asking = {c.variable for c in query.where for path in paths_of(c.formula) if path and path[0].name == ANNOTATION}
    joined = {join.variable for join in query.joins}
    for leaf, variables in leaves(query.main):
        inner = leaf.name in resolved and resolved[leaf.name].joins
        if asking.intersection(variables) and (inner or joined.intersection(variables)):
            reason = "conditions are checked before an item is annotated, so they cannot refer to its annotation"
            feed = leaf.name if inner else "FEED"
            raise FeedError(f"{reason}; publish the feed, 'register feed {feed} as NAME' and read NAME", ANNOTATION)


def _moved(part: Filter, by: int, after: int = 0) -> Filter:
    return Filter(part.source, shifted(part.formula, by), tuple(join + after for join in part.joins))


def _annotation(join: Annotation, by: int) -> Annotation:
    filters = tuple(_moved(part, by) for part in join.filters)
    window = replace(join.window, end=join.window.end and _later(join.window.end, by))
    return replace(join, window=window, filters=filters, condition=shifted(join.condition, by))


def shifted(formula: Formula, by: int) -> Formula:
    """The formula with its slots counted from `by` on."""
    match formula:
        case Atom():
            right = _later(formula.right, by) if isinstance(formula.right, Slot) else formula.right
            threshold = formula.threshold and _later(formula.threshold, by)
            return replace(formula, right=right, threshold=threshold)
        case Not(part):
            return Not(shifted(part, by))
        case And(parts):
            return And(tuple(shifted(part, by) for part in parts))
        case Or(parts):
            return Or(tuple(shifted(part, by) for part in parts))


def _later(slot: Slot, by: int) -> Slot:
    return replace(slot, index=slot.index + by)
