"""Return clauses of XQuery: outputs that look below the nodes that a query's variables are bound to.

A return pattern is optional (utility-driven shedding, section 2.1): if it finds nothing, only its part of the output is
empty. Return patterns are therefore not part of the tree pattern that a document must match. They are evaluated when an
output is constructed, over the nodes below the variable, in document order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fishweir.records import dataclass

if TYPE_CHECKING:
    from fishweir.algebra.nodes import Constant, Output, Step


@dataclass(frozen=True, slots=True)
class PathOutput:
    """All nodes at a path below a variable's node, as elements; for `text()` and attributes, as text."""

    variable: str
    path: tuple[Step, ...]
    text: bool = False

    def __str__(self) -> str:
        deep = {"descendant": "//", "descendant-attribute": "//@", "attribute": "/@"}
        return f"${self.variable}" + "".join(f"{deep.get(step.axis, '/')}{step.name}" for step in self.path)


@dataclass(frozen=True, slots=True)
class PathCondition:
    """Some node at the path satisfies the comparison; without a comparison, some node exists."""

    at: PathOutput
    op: str = ""
    constant: Constant | None = None


@dataclass(frozen=True, slots=True)
class ForOutput:
    """A nested `for`: its parts, repeated for each node at a path for which the conditions hold."""

    variable: str
    over: PathOutput
    conditions: tuple[PathCondition, ...]
    parts: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class ReturnOutput:
    """The outermost return clause: one result per binding of these variables, even of those its parts do not use."""

    variables: tuple[str, ...]
    parts: tuple[Output, ...]
