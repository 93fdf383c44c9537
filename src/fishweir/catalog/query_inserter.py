"""Bulk insertion of queries: assigns names and numbers, stores each shape once, and inserts all rows together.

In: bound queries, grouped by those that differ only in names and constants. A query that is already registered verbatim
is skipped; a different definition under an existing name is an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice, repeat
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any, NamedTuple

from fishweir.algebra.action_columns import repeated
from fishweir.algebra.clauses import to_normals
from fishweir.algebra.codec import to_json, to_text
from fishweir.algebra.feeds import FeedQuery, Selection
from fishweir.algebra.nodes import Constant, CreateQuery, Shape
from fishweir.algebra.path_queries import Paths
from fishweir.algebra.uniform_queries import MixedQueries, UniformQueries
from fishweir.catalog.channels import ChannelSpecs
from fishweir.catalog.database import MANY, Connection, chunks
from fishweir.catalog.publications import Publications
from fishweir.catalog.schema import ABSENCE, NOT_YET, PATHS
from fishweir.catalog.subscribers import Columns, Subscribers, SubscriptionRequests
from fishweir.errors import QueryError

COLUMNS = (
    "number", "name", "unnamed", "shape", "constants", "text", "start", "every", "expire", "preference", "paused",
    "publication", "published", "replaces", "added", "dropped",
)  # fmt: skip
_ROW = itemgetter(*COLUMNS)
SHAPE_COLUMNS = ("id", "shape", "normal_form", "signature")


AnyShape = Shape | Selection | Paths


class InsertedQueries(NamedTuple):
    """Queries of one shape that have just been stored, with the first and the last change of those stored together."""

    change: int
    upto: int
    numbers: Sequence[int]
    shape: AnyShape
    constants: Sequence[tuple[Constant, ...]]


class QueryInserter:
    """Adds queries within one change; `take` reserves change numbers."""

    def __init__(
        self,
        connection: Connection,
        take: Callable[[int], int],
        publications: Publications,
        subscribers: Subscribers,
    ) -> None:
        self.connection, self.take = connection, take
        self.publications, self.subscribers = publications, subscribers
        self.on_added: Callable[[Sequence[InsertedQueries]], None] | None = None
        """Called with queries once they are stored."""
        self.replaced: dict[str, tuple[int, bool]] = {}
        """For replaced queries, by name: the current number, and whether the user named them."""
        self._shapes: dict[int, tuple[AnyShape, int]] = {}
        self._number = self._shape_number = -1
        self._unnamed: dict[str, str] | None = None
        self._used: set[str | None] = set()

    def forget_names(self) -> None:
        """Clears the cache of assigned names: unnamed queries may have been dropped."""
        self._unnamed = None

    def use(self, name: str) -> None:
        """Reserves a name, so that it is not assigned to an unnamed query."""
        self._used.add(name)

    def add(self, given: Sequence[UniformQueries | MixedQueries]) -> list[str]:
        """Stores queries and returns the names of all of them, including those that already existed."""
        self.take(0)
        if self._number < 0:
            self._number = int(self.connection.scalar("select max(number) from queries") or 0)
        named = self._with_names(given)
        names = [name for some in named for name in some.names]
        existing = self._texts(names)
        if existing or len(set(names)) < len(names):
            named = [self._without_existing(one, existing) for some in named for one in some.in_order()]
        self._store(named)
        return names  # type: ignore[return-value]

    def _store(self, given: Sequence[UniformQueries | MixedQueries]) -> None:
        some = [one for one in given if len(one)]
        self._store_shapes([stored_shape(part.first) for one in some for part in one.parts])
        change = self.take(sum(map(len, some)))
        rows: list[tuple[Any, ...]] = []
        actions: list[Columns] = []
        added: list[InsertedQueries] = []
        for one in some:
            places, last = iter(one.places), change + len(one) - 1
            for part in one.parts:
                own = list(islice(places, len(part)))
                numbers, changes = [self._number + 1 + place for place in own], [change + place for place in own]
                has_started = (part.first.schedule.start or 0.0) <= self.subscribers.now
                actions += self._actions(part, changes)
                columns, same = self._columns(part, numbers, changes if has_started else None)
                if len(part) < MANY:
                    rows += _rows(columns, same, len(part))
                else:
                    self.connection.insert_columns("queries", columns, same)
                if has_started:
                    added.append(InsertedQueries(change, last, numbers, stored_shape(part.first), part.constants))
            self._number += len(one)
            change += len(one)
        self.connection.insert_tuples("queries", COLUMNS, rows)
        self.subscribers.insert(actions)
        if self.on_added is not None:
            self.on_added(added)

    def _columns(
        self, some: UniformQueries, numbers: Sequence[int], changes: Sequence[int] | None
    ) -> tuple[dict[str, Sequence[Any]], dict[str, Any]]:
        """The columns in which the queries differ, and the values that they share."""
        first, schedule, unnamed = some.first, some.first.schedule, some.first.name is None
        columns: dict[str, Sequence[Any]] = {
            "number": numbers,
            "name": some.names,
            "constants": constants_json(some.constants),
            "text": some.texts,
        }
        if changes is not None:
            columns["added"] = changes
        if self.replaced:
            replaced = [self.replaced.pop(str(name), (None, unnamed)) for name in some.names]
            columns["replaces"], columns["unnamed"] = zip(*replaced, strict=True)
        same = {
            "unnamed": unnamed,
            "shape": self._shapes[id(first.shape)][1],
            "start": schedule.start,
            "every": schedule.every or 0.0,
            "expire": schedule.expire,
            "preference": json.dumps(to_json(first.preference)) if first.preference else None,
            "paused": False,
            "publication": self.publications.id_of(first.feed) if first.feed else None,
            "published": first.published,
            "replaces": None,
            "added": NOT_YET,
            "dropped": None,
        }
        return columns, {name: value for name, value in same.items() if name not in columns}

    def _actions(self, some: UniformQueries, changes: Sequence[int]) -> Iterator[Columns]:
        """The subscriptions for the actions of the queries. A query that replaces another keeps that one's actions."""
        if not some.first.actions:
            return
        going = [place for place, name in enumerate(some.names) if name not in self.replaced]
        if len(going) < len(some):
            some, changes = some.at(going), [changes[place] for place in going]
        names, count = [str(name) for name in some.names], len(some)
        schedules, sheets = [some.first.schedule] * count, [None] * count
        for actions in some.actions or [repeated(action, count) for action in some.first.actions]:
            specs = ChannelSpecs(actions, schedules, sheets, names)
            yield self.subscribers.columns(SubscriptionRequests(names, specs, some.texts), changes, by_query=True)

    # Names

    def _with_names(self, given: Sequence[UniformQueries | MixedQueries]) -> list[UniformQueries | MixedQueries]:
        """Names unnamed queries q1, q2, ...; a query that is already registered keeps its name."""
        texts = [text for some in given for text in some.unnamed_texts()]
        if not texts:
            return list(given)
        if self._unnamed is None:
            self._unnamed, self._used = self._assigned_names()
        names, used = self._unnamed, self._used | {name for some in given for name in some.names}
        fresh = (f"q{i}" for i in count(len(names) + 1) if f"q{i}" not in used)
        for text in texts:
            if text not in names:
                names[text] = next(fresh)
                self._used.add(names[text])
        return [_named(some, names) for some in given]

    def _assigned_names(self) -> tuple[dict[str, str], set[str | None]]:
        """The names of active unnamed queries by text, and all names of the form q..., of queries and streams."""
        mine = "select text, name from queries where unnamed and dropped is null"
        names = {row.text: row.name for row in self.connection.execute(mine)}
        taken = " union ".join(f"select name from {table} where name like 'q%'" for table in ("queries", "streams"))
        return names, set(self.connection.scalars(taken))

    def _texts(self, names: Sequence[str | None]) -> dict[str | None, str]:
        """The texts of the active queries with these names."""
        found: dict[str | None, str] = {}
        select = "select name, text from queries where name in :names and (dropped is null or paused)"
        for some in chunks(names):
            found |= {row.name: row.text for row in self.connection.execute(select, names=some)}
        return found

    def _without_existing(self, some: UniformQueries, existing: dict[str | None, str]) -> UniformQueries:
        """The queries whose names are not registered yet; `existing` are the registered texts by name."""
        places = []
        for place, (name, text) in enumerate(zip(some.names, some.texts, strict=True)):
            if name not in existing:
                places.append(place)
            elif existing[name] != text:
                kind = "feed" if some.first.published and some.first.feed else "query"
                raise QueryError(f"the {kind} {name} already exists with a different definition")
            existing[name] = text
        return some if len(places) == len(some) else some.at(places)

    # Shapes

    def _store_shapes(self, given: Iterable[AnyShape]) -> None:
        """Stores new shapes. Queries of one shape pass the same object, so shapes are looked up by identity."""
        new = {id(shape): shape for shape in given if id(shape) not in self._shapes}
        texts = {key: to_text(shape) for key, shape in new.items()}
        ids = self._shape_ids(list(set(texts.values())))
        rows = []
        for key, shape in new.items():
            if texts[key] not in ids:
                ids[texts[key]] = self._next_shape()
                rows.append((ids[texts[key]], texts[key], *_normal_form_and_signature(shape)))
            self._shapes[key] = shape, ids[texts[key]]
        self.connection.insert_tuples("shapes", SHAPE_COLUMNS, rows)

    def _shape_ids(self, texts: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for some in chunks(texts):
            rows = self.connection.execute("select shape, id from shapes where shape in :texts", texts=some)
            found |= {row.shape: row.id for row in rows}
        return found

    def _next_shape(self) -> int:
        """The next shape id. Other writers are locked out, so it is free."""
        if self._shape_number < 0:
            self._shape_number = int(self.connection.scalar("select max(id) from shapes") or 0)
        self._shape_number += 1
        return self._shape_number


def _named(some: UniformQueries | MixedQueries, names: Mapping[str, str]) -> UniformQueries | MixedQueries:
    """Queries with names that were assigned by text. The first of them still shows that they have none of their own."""
    if isinstance(some, MixedQueries):
        return MixedQueries([_named(part, names) for part in some.parts], some.places)  # type: ignore[misc]
    if some.first.name is not None:
        return some
    return replace(some, names=[names[text] for text in some.texts])


def stored_shape(statement: CreateQuery) -> AnyShape:
    """The shape of a statement as stored. Feed queries have been resolved to their sources before."""
    assert not isinstance(statement.shape, FeedQuery)
    return statement.shape


def bound_shape(statement: CreateQuery) -> Shape | Selection:
    """The shape of a statement whose path, if any, is not a constant."""
    shape = stored_shape(statement)
    assert not isinstance(shape, Paths)
    return shape


def _normal_form_and_signature(shape: AnyShape) -> tuple[str, str]:
    """The normal form and the signature of a shape."""
    if isinstance(shape, Paths):
        return PATHS, ""
    templates = [normal.template for normal in to_normals(shape)]
    signatures = (" and ".join(template.signatures) for template in templates)
    normal_form = " or ".join(str(template) for template in templates)
    waits = isinstance(shape, Shape) and shape.unless is not None
    return f"{ABSENCE} {normal_form}" if waits else normal_form, " or ".join(signatures)


def _rows(columns: Mapping[str, Sequence[Any]], same: dict[str, Any], size: int) -> Iterable[tuple[Any, ...]]:
    if size == 1:
        return [_ROW(same | {name: column[0] for name, column in columns.items()})]
    return zip(*(columns.get(name) or repeat(same[name], size) for name in COLUMNS), strict=True)


def constants_json(constants: Sequence[tuple[Constant, ...]]) -> list[str]:
    """The constants of each query as JSON, formatted as by `json.dumps`."""
    if len({len(row) for row in constants}) > 1:
        return list(map(json.dumps, constants))
    columns = [_column_json(column) for column in zip(*constants, strict=True)]
    return [f"[{', '.join(row)}]" for row in zip(*columns, strict=True)] if columns else ["[]"] * len(constants)


def _column_json(column: Sequence[Constant]) -> list[str]:
    kinds = set(map(type, column))
    if kinds == {str}:
        return list(map(encode_basestring_ascii, column))  # type: ignore[arg-type]
    if kinds == {float} and all(map(math.isfinite, column)):  # type: ignore[arg-type]
        return list(map(float.__repr__, column))  # type: ignore[arg-type]
    return list(map(json.dumps, column))
