"""The contestants of `fishweir bench paths`: Fishweir, and lxml's XPath one path at a time.

The shared automaton runs plain paths. Paths with predicates are registered as XSCL selections and run by the shared
plan as the worker does, from walking the documents to the lists of queries. All contestants get the same texts and the
same parsed documents, on one thread. They are checked to return the same nodes before anything is timed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from time import process_time
from typing import Any

import numpy as np
from lxml import etree

from fishweir.algebra.documents import Element
from fishweir.algebra.nodes import Constant, CreateQuery, Shape, Source
from fishweir.algebra.normal import Template, to_normal
from fishweir.evaluate.arrays import Ints, expand
from fishweir.evaluate.matches import Matches
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, planned_segment
from fishweir.evaluate.witnesses.automaton.automaton import PathAutomaton
from fishweir.evaluate.witnesses.automaton.batch import Batch
from fishweir.evaluate.witnesses.automaton.xpath import parse_xpath
from fishweir.languages.script import parse_script
from fishweir.papers.experiment.contestants import Disagreement

Nodes = set[tuple[int, str]]
"""(document, node) pairs of one path: `17`, `17@id`."""


class Shared:
    """All paths in one automaton. Documents are walked once, in batches."""

    name = "Fishweir"

    def __init__(self, texts: Iterable[str], prefixes: dict[str, str]) -> None:
        self.automaton = PathAutomaton()
        self.ids = {text: self.automaton.add(parse_xpath(text, prefixes)) for text in texts}

    def distinct(self) -> list[str]:
        """The shortest text for each distinct path: `a[b][c]` equals `a[c][b]`."""
        by_id: dict[int, str] = {}
        for text, path in self.ids.items():
            by_id[path] = min(by_id.get(path, text), text, key=len)
        return list(by_id.values())

    def match(self, roots: Sequence[Element]) -> Batch:
        """All hits, factorized: states with their nodes and their paths."""
        batch = self.automaton.run(roots)
        _ = batch.factorized
        return batch

    def expand(self, batch: Any) -> None:
        batch.expand()

    def lengths(self, batch: Any) -> dict[str, int]:
        """The number of nodes found for each text."""
        found = batch.factorized
        rows = np.repeat(np.diff(found.row_offsets), np.diff(found.path_offsets))
        by_path = np.bincount(found.paths, rows, minlength=max(self.ids.values()) + 1)
        return {text: int(by_path[path]) for text, path in self.ids.items()}

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


class SharedPlan:
    """All paths as XSCL selections in one shared plan: the automaton, then the tables and twigs."""

    name = Shared.name

    def __init__(self, texts: Iterable[str], prefixes: dict[str, str]) -> None:
        self.texts = list(texts)
        script = ";\n".join(f"create query q{i} as {to_xscl(text, prefixes)}" for i, text in enumerate(self.texts))
        created = [statement for statement in parse_script(script) if isinstance(statement, CreateQuery)]
        self.planned: list[tuple[Template, tuple[Constant, ...]]] = []
        for query in created:
            assert isinstance(query.shape, Shape)
            normal = to_normal(query.shape)
            assert isinstance(normal.template, Template)
            self.planned.append((normal.template, tuple(query.constants[i] for i in normal.slots)))  # type: ignore[index]
        rows = [(i, template, constants) for i, (template, constants) in enumerate(self.planned)]
        self.segment = planned_segment("bench", build_groups(rows, {}), {})
        self.plan = plan_of([self.segment], [Source(STREAM)])

    def distinct(self) -> list[str]:
        by_query: dict[object, str] = {}
        for text, planned in zip(self.texts, self.planned, strict=True):
            by_query[planned] = min(by_query.get(planned, text), text, key=len)
        return list(by_query.values())

    def match(self, roots: Sequence[Element]) -> list[tuple[int, Matches]]:
        walk = self.plan.start()
        for i, root in enumerate(roots):
            walk.add(i, root)
        return [(index, matches) for _, index, matches in self.plan.match(walk.tables())]

    def expand(self, found: Any) -> None:
        self._pairs(found)

    def _pairs(self, found: list[tuple[int, Matches]]) -> tuple[Ints, Ints, Ints]:
        """Query, document and element of every hit."""
        parts = [np.empty((3, 0), np.int64)]
        for index, matches in ((index, matches.listed()) for index, matches in found):
            slices, positions = expand(matches.slices[::2], matches.slices[1::2])
            by_slice = np.repeat(np.arange(len(matches)), np.diff(matches.slice_offsets) // 2)[slices]
            rows = np.append(by_slice, np.repeat(np.arange(len(matches)), np.diff(matches.member_offsets)))
            queries = np.append(np.asarray(self.segment.groups[index].members)[positions], matches.members)
            parts.append(np.stack([queries, matches.documents[rows], matches.nodes[rows, 0]]))
        queries, documents, nodes = np.concatenate(parts, axis=1)
        return queries, documents, nodes

    def lengths(self, found: Any) -> dict[str, int]:
        queries, _, _ = self._pairs(found)
        return dict(zip(self.texts, np.bincount(queries, minlength=len(self.texts)).tolist(), strict=True))

    def nodes(self, roots: Sequence[Element], texts: Sequence[str]) -> dict[str, Nodes]:
        result: dict[str, Nodes] = {text: set() for text in texts}
        for query, document, node in np.stack(self._pairs(self.match(roots)), axis=1).tolist():
            template, _ = self.planned[query]
            step = template.nodes[template.outputs[0]].step
            result[self.texts[query]].add((document, f"{node}@{step.name}" if step.is_attribute else f"{node}"))
        return result


STREAM = "S"
NAME = re.compile(r"(?<=[/@\[])(?:(\w+):)?([A-Za-z_][\w.-]*)")


def to_xscl(text: str, prefixes: dict[str, str]) -> str:
    """A path query as an XSCL selection. Namespaces are written out, as XSCL has no prefixes."""
    pieces = re.split('("[^"]*")', text)
    pieces[::2] = [NAME.sub(lambda name: f"{{{prefixes.get(name[1], '')}}}{name[2]}", piece) for piece in pieces[::2]]
    return STREAM + "".join(pieces)


class Alone:
    """Each distinct path by itself, precompiled by lxml."""

    name = "lxml, each path alone"

    def __init__(self, texts: Iterable[str], prefixes: dict[str, str]) -> None:
        self.compiled = {text: etree.XPath(text, namespaces=prefixes) for text in dict.fromkeys(texts)}

    def match(self, roots: Sequence[Element], texts: Sequence[str]) -> tuple[dict[str, int], list[float]]:
        """Evaluates each path on each document. Returns the number of nodes found, which are discarded, and the time
        taken."""
        trees = [root.getroottree() for root in roots]
        lengths, seconds = {}, []
        for text in texts:
            path: Any = self.compiled[text]
            start = process_time()
            lengths[text] = sum([len(path(tree)) for tree in trees])
            seconds.append(process_time() - start)
        return lengths, seconds

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


Fast = Shared | SharedPlan
FAST: dict[str, type[Shared] | type[SharedPlan]] = {"plain": Shared, "predicates": SharedPlan}
Contestant = Callable[[Iterable[str], dict[str, str]], Fast | Alone]


def check_agreement(
    texts: Sequence[str],
    roots: Sequence[Element],
    prefixes: dict[str, str],
    label: str,
    contestants: Sequence[Contestant],
) -> int:
    """Returns the number of (path, node) pairs compared. Raises Disagreement unless all contestants find the same
    nodes."""
    distinct = list(dict.fromkeys(texts))
    first, *others = [make(distinct, prefixes).nodes(roots, distinct) for make in contestants]
    for other in others:
        for text in distinct:
            if first[text] != other[text]:
                some = sorted(first[text] ^ other[text])[:3]
                raise Disagreement(
                    f"{label}: {text} finds {len(first[text]):,} nodes together with others, {len(other[text]):,} "
                    f"alone; e.g. (document, node) {some}"
                )
    return sum(map(len, first.values()))
