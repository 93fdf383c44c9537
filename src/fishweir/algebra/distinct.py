"""`distinct on link, title within 7 days`: of the documents that a query selects, the first of each key.

Two documents have the same key if they have the same values at all of the paths. The documents of one query are decided
in arrival order: a document passes unless one with the same key has passed whose timestamp is at most the interval
away. So a key that recurs passes again once the interval is over. A document without any value at the paths has no key
and always passes. A document that passes yields all its results.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from fishweir.algebra.nodes import Source, Step
from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.algebra.documents import Element
    from fishweir.algebra.normal import Template
    from fishweir.algebra.predicates import Predicate


@dataclass(frozen=True, slots=True)
class Distinct:
    """The paths below the document element whose values are the key, and the interval."""

    paths: tuple[tuple[Step, ...], ...]
    seconds: float

    def __str__(self) -> str:
        return f"on {', '.join('/'.join(map(str, path)) for path in self.paths)} within {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class DistinctTemplate:
    """A query over one document, the `distinct` clause on its documents, and all sources of the whole query."""

    kind: ClassVar[str] = "distinct"

    inner: Template | Predicate
    distinct: Distinct
    sources: tuple[Source, ...]

    @property
    def signatures(self) -> list[str]:
        return [*self.inner.signatures, f"distinct {self.distinct}"]

    def __str__(self) -> str:
        return f"{self.inner} | distinct {self.distinct}"


# The oracle


def key_of(root: Element, distinct: Distinct) -> Hashable | None:
    """The key of a document; None if it has no value at any of the paths."""
    from fishweir.algebra.documents import values_at  # imported late: registering a query does not load the XML library

    values = tuple(tuple(values_at(root, path)) for path in distinct.paths)
    return values if any(values) else None


def passing(arrived: Iterable[tuple[Hashable | None, float]], seconds: float) -> Iterator[bool]:
    """Whether each document of a query passes; documents are given as key and timestamp, in arrival order."""
    passed: dict[Hashable, list[float]] = {}
    for key, time in arrived:
        before = passed.setdefault(key, [])
        is_first = key is None or all(abs(time - other) > seconds for other in before)
        if is_first:
            before.append(time)
        yield is_first
