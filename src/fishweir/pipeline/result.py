"""One result, as returned to users."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from json.encoder import encode_basestring
from typing import Any, Protocol

from fishweir.algebra.nodes import Constant
from fishweir.algebra.values import to_text

to_json_text = json.JSONEncoder(ensure_ascii=False, default=to_text).encode


class QueryLike(Protocol):
    """A query, or what queries of one kind have in common."""

    @property
    def shape(self) -> Any: ...
    @property
    def constants(self) -> tuple[Constant, ...]: ...
    @property
    def preferred(self) -> bool:
        """Whether the query has a preference, and so may lose patterns under overload."""


@dataclass(frozen=True, slots=True)
class Result:
    """One result of one query; `bindings` by variable: document, node and value. For streams of published results,
    `since` is the catalog version when a join's earliest document arrived, `origin` a selection's document, and `place`
    the stream and the number under which that document arrived.
    """

    query: str
    documents: list[str]
    timestamp: float
    bindings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    output: str | dict[str, Any] = ""
    since: int | None = field(default=None, repr=False, compare=False)
    origin: int | None = field(default=None, repr=False, compare=False)
    place: tuple[int, int] | None = field(default=None, repr=False, compare=False)
    left_out: tuple[str, ...] = ()
    """The return patterns missing from the output because they were omitted under overload."""

    def to_dict(self) -> dict[str, Any]:
        found = {
            "query": self.query,
            "documents": self.documents,
            "timestamp": self.timestamp,
            "bindings": {name: dict(bound) for name, bound in self.bindings.items()},
            "output": self.output,
        }
        return found | {"left_out": list(self.left_out)} if self.left_out else found

    def to_json(self) -> str:
        return to_json_text(self.to_dict())


_Draft = make_dataclass("_Draft", [one.name for one in fields(Result)], slots=True)


def results_of(*columns: Iterable[Any]) -> list[Result]:
    """Results from columns of all their fields. Each object is filled before it becomes immutable, which takes a fifth
    of the time of a frozen class's constructor.
    """
    made: list[Any] = list(map(_Draft, *columns))
    for result in made:
        result.__class__ = Result
    return made


def json_texts(results: Iterable[Result]) -> Iterator[str]:
    """The texts of `to_json`. Equal outputs of consecutive queries for one document are written once."""
    shared: tuple[Any, ...] = ()
    rest = ""
    for result in results:
        shown = (result.documents, result.bindings, result.output, result.left_out)
        if not shared or any(one is not other for one, other in zip(shown, shared, strict=True)):
            shared, whole = shown, result.to_dict()
            del whole["query"]
            rest = to_json_text(whole)[1:]
        yield f'{{"query": {encode_basestring(result.query)}, {rest}'
