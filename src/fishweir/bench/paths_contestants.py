"""Who competes in `fishweir bench paths`: the shared automaton, and lxml's XPath one path at a time.

Both get the same texts and the same parsed documents, on one thread. Before anything is timed they are
shown to give the same nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

from fishweir.algebra.documents import Element
from fishweir.bench.contestants import Disagreement
from fishweir.sharing.automaton.automaton import PathAutomaton
from fishweir.sharing.automaton.batch import Batch
from fishweir.sharing.automaton.xpath import parse_xpath

Nodes = set[tuple[int, str]]
"""(document, node) of one path: `17`, `17@id`."""


class Counts(NamedTuple):
    """Distinct paths that found something, and (path, node) pairs."""

    fired: int
    pairs: int


class Shared:
    """All paths in one automaton; documents are walked once, a batch at a time."""

    name = "shared automaton"

    def __init__(self, texts: Iterable[str], prefixes: dict[str, str]) -> None:
        self.automaton = PathAutomaton()
        self.ids = {text: self.automaton.add(parse_xpath(text, prefixes)) for text in texts}

    def distinct(self) -> list[str]:
        """One text for each distinct path, the shortest: `a[b][c]` is `a[c][b]`."""
        by_id: dict[int, str] = {}
        for text, path in self.ids.items():
            by_id[path] = min(by_id.get(path, text), text, key=len)
        return list(by_id.values())

    def match(self, roots: Sequence[Element]) -> Batch:
        """All hits, factorized: states with their nodes and their paths; paths with predicates one by one."""
        batch = self.automaton.run(roots)
        _ = batch.factorized, batch.conditional
        return batch

    def counts(self, batch: Batch) -> Counts:
        pairs = batch.factorized.pairs + sum(map(len, batch.conditional.values()))
        return Counts(len(batch.matched()), pairs)

    def nodes(self, roots: Sequence[Element], texts: Sequence[str]) -> dict[str, Nodes]:
        batch = self.match(roots)
        rows, paths = batch.expand()
        order = np.argsort(paths, kind="stable")
        rows, paths = rows[order], paths[order]
        found = {}
        for text in texts:
            lo, hi = (int(np.searchsorted(paths, self.ids[text], side)) for side in ("left", "right"))
            found[text] = {(int(batch.rows.documents[row]), batch.node_id(int(row))) for row in rows[lo:hi]}
        return found


class Alone:
    """Each distinct path by itself, precompiled by lxml."""

    name = "lxml, each path alone"

    def __init__(self, texts: Iterable[str], prefixes: dict[str, str]) -> None:
        self.compiled = {text: etree.XPath(text, namespaces=prefixes) for text in dict.fromkeys(texts)}

    def match(self, roots: Sequence[Element], texts: Sequence[str] | None = None) -> Counts:
        """Each path on each document; what it finds is counted and let go."""
        trees = [root.getroottree() for root in roots]
        paths: list[Any] = [self.compiled[text] for text in (self.compiled if texts is None else texts)]
        lengths = [sum([len(path(tree)) for tree in trees]) for path in paths]
        return Counts(len(lengths) - lengths.count(0), sum(lengths))

    def nodes(self, roots: Sequence[Element], texts: Sequence[str]) -> dict[str, Nodes]:
        found: dict[str, Nodes] = {text: set() for text in texts}
        for i, root in enumerate(roots):
            number = {element: at for at, element in enumerate(root.iter(etree.Element))}
            for text in texts:
                found[text] |= {(i, _node_id(node, number)) for node in self.compiled[text](root.getroottree())}  # type: ignore[union-attr]
        return found


def _node_id(node: object, number: dict[Element, int]) -> str:
    if isinstance(node, str):
        name = str(node.attrname)  # type: ignore[attr-defined]
        return f"{number[node.getparent()]}@{name.rpartition('}')[2]}"  # type: ignore[attr-defined]
    return str(number[node])  # type: ignore[index]


Contestant = Callable[[Iterable[str], dict[str, str]], Shared | Alone]


def check_agreement(
    texts: Sequence[str], roots: Sequence[Element], prefixes: dict[str, str], label: str,
    contestants: Sequence[Contestant] = (Shared, Alone),
) -> int:  # fmt: skip
    """Raises Disagreement unless all find the same nodes; how many (path, node) pairs were compared."""
    distinct = list(dict.fromkeys(texts))
    first, *others = [make(distinct, prefixes).nodes(roots, distinct) for make in contestants]
    for other in others:
        for text in distinct:
            if first[text] != other[text]:
                some = sorted(first[text] ^ other[text])[:3]
                raise Disagreement(
                    f"{label}: {text} finds {len(first[text]):,} nodes in the automaton, {len(other[text]):,} "
                    f"by itself; e.g. (document, node) {some}"
                )
    return sum(map(len, first.values()))
