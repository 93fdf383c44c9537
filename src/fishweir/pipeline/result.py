"""One result, as people and their programs get it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fishweir.algebra.nodes import Constant
from fishweir.algebra.values import to_text


class QueryLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Any: ...
    @property
    def constants(self) -> tuple[Constant, ...]: ...
    @property
    def added(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Result:
    """One result of one query; `bindings` by variable: document, node and value. For streams of published results,
    `since` is the version of the catalog when a join's earliest document arrived, `origin` a selection's document, and
    `place` the stream and the number under which that came."""

    query: str
    documents: list[str]
    timestamp: float
    bindings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    output: str | dict[str, Any] = ""
    since: int | None = field(default=None, repr=False, compare=False)
    origin: int | None = field(default=None, repr=False, compare=False)
    place: tuple[int, int] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "documents": self.documents,
            "timestamp": self.timestamp,
            "bindings": {name: dict(bound) for name, bound in self.bindings.items()},
            "output": self.output,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, default=to_text)
