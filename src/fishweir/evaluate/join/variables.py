"""The variables (source and path) whose values and nodes joins retain, and the paths to find in a side's documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from fishweir.algebra.nodes import Source
from fishweir.algebra.normal import Template
from fishweir.evaluate.select.constant_tables import template_paths
from fishweir.evaluate.witnesses.path_tables import Path


@dataclass(frozen=True)
class Variable:
    """The name under which a value or node of a document is stored. Equal definitions are one variable."""

    source: Source
    path: Path
    columns: bool = False

    @cached_property
    def key(self) -> int:
        steps = [f"{step.axis} {step.name} {step.namespace!r}{step.position or ''}" for step in self.path]
        return key_of("\t".join([repr(self.source.name), str(self.source.dtd), str(self.columns), *steps]))

    def __hash__(self) -> int:
        return self.key


@lru_cache(maxsize=100_000)
def variables_in(template: Template) -> tuple[Variable, ...]:
    """The variable of each node of a side."""
    return tuple(Variable(template.source, template.path(i), template.columns) for i in range(len(template.nodes)))


@lru_cache(maxsize=100_000)
def kept_nodes(template: Template) -> tuple[int, ...]:
    """The nodes that determine whether, and how often, a pattern occurs in a document."""
    return tuple(sorted({*template.leaves, *template.referred}))


def key_of(text: str) -> int:
    """A hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def side_paths(template: Template, kept: Iterable[int], compared: Iterable[int]) -> dict[Path, bool]:
    """The paths to find in a side's documents, each with a flag: whether its values are read."""
    found = template_paths(template)
    found |= {template.path(node): found.get(template.path(node), False) for node in kept}
    return found | {template.path(node): True for node in compared}


def together(paths: Iterable[Mapping[Path, bool]]) -> dict[Path, bool]:
    """The union of the paths of several sides. Values are read if any side reads them."""
    found: dict[Path, bool] = {}
    for own in paths:
        for path, valued in own.items():
            found[path] = found.get(path, False) or valued
    return found
