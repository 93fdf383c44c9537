"""Documents, patterns sampled from them, lxml as the reference, and a naive enumerator of embeddings."""

from __future__ import annotations

import os
import random
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from lxml import etree

from fishweir.algebra.documents import BadDocument, Element, attribute_id, attributes_named, local_name, parse_document
from fishweir.algebra.values import satisfies
from fishweir.evaluate.witnesses.automaton.automaton import PathAutomaton
from fishweir.evaluate.witnesses.automaton.batch import Batch
from fishweir.evaluate.witnesses.automaton.pattern import (
    And,
    Compare,
    Exists,
    NameTest,
    Not,
    Or,
    PathStep,
    Pattern,
    Predicate,
)

DATA = Path(os.environ.get("FISHWEIR_DATA", Path(__file__).parents[5] / "shared" / "data"))
Node = tuple[Element, str | None]
"""An element, or an attribute by its name."""


@lru_cache(maxsize=1)
def real_documents() -> dict[str, Element]:
    """The well-formed documents of xml_docs by file name, in a fixed order."""
    archive = DATA / "xml_docs" / "xml_docs.tar.xz"
    if not archive.exists():
        pytest.skip(f"no {archive}: set FISHWEIR_DATA to the folder with xml_docs")
    found = {}
    with tarfile.open(archive) as files:
        for member in sorted(files, key=lambda m: m.name):
            body = files.extractfile(member) if member.isfile() else None
            try:
                if body is not None:
                    found[member.name] = parse_document(body.read())
            except BadDocument:
                continue
    return found


@lru_cache(maxsize=1)
def real_bodies() -> list[bytes]:
    """Files of xml_docs and feed_docs, including broken ones; empty if they are absent."""
    found = []
    for name in ("xml_docs", "feed_docs"):
        archive = DATA / name / f"{name}.tar.xz"
        if archive.exists():
            with tarfile.open(archive) as files:
                bodies = [files.extractfile(member) for member in files if member.isfile()]
                found += [body.read() for body in bodies if body is not None]
    return found


def to_lxml(pattern: Pattern, relative: bool = False) -> str:
    """The pattern as an XPath 1.0 text without prefixes, for lxml."""
    text = "".join(_lxml_step(step) for step in pattern.steps)
    return f".{text}" if relative else text


def _lxml_step(step: PathStep) -> str:
    tests = []
    if step.test.local is not None:
        tests.append(f"local-name() = '{step.test.local}'")
    if step.test.namespace is not None:
        tests.append(f"namespace-uri() = '{step.test.namespace}'")
    shown = f"{'//' if step.deep else '/'}{'@' if step.attribute else ''}*"
    shown += "".join(f"[{test}]" for test in tests)
    return shown + (f"[{_lxml_predicate(step.predicate)}]" if step.predicate else "")


def _lxml_predicate(predicate: Predicate) -> str:
    match predicate:
        case Exists(pattern):
            return f"boolean({to_lxml(pattern, True)})"
        case Compare(pattern, op, str(constant)):
            quote = "'" if '"' in constant else '"'
            return f"{to_lxml(pattern, True)} {op} {quote}{constant}{quote}"
        case Compare(pattern, op, constant):  # a value that is not a number satisfies no comparison
            inner = to_lxml(pattern, True)
            test = f"(number(.) = number(.)) and (number(.) {op} {constant})"
            return f"boolean({inner}[{test}])" if pattern.steps else test
        case And(parts):
            return " and ".join(f"({_lxml_predicate(part)})" for part in parts)
        case Or(parts):
            return " or ".join(f"({_lxml_predicate(part)})" for part in parts)
        case Not(part):
            return f"not({_lxml_predicate(part)})"


def lxml_nodes(root: Element, text: str, namespaces: dict[str, str] | None = None) -> list[str]:
    """The node ids that lxml finds, sorted."""
    number = {element: i for i, element in enumerate(root.iter(etree.Element))}
    found = etree.XPath(text, namespaces=namespaces)(root.getroottree())
    return sorted(
        shown_attribute(number[n.getparent()], n.getparent(), n.attrname) if hasattr(n, "attrname") else str(number[n])
        for n in found  # type: ignore[union-attr]
    )


def shown_attribute(number: int, element: Element, key: str) -> str:
    return attribute_id(number, key, attributes_named(element, local_name(key)).index(key))


def found_nodes(batch: Batch, path: int, document: int = 0) -> list[str]:
    nodes = batch.nodes(path)
    return sorted(batch.node_id(int(row)) for row in nodes.rows[nodes.documents == document])


def run_one(root: Element, *patterns: Pattern) -> tuple[Batch, list[int]]:
    automaton = PathAutomaton()
    ids = [automaton.add(pattern) for pattern in patterns]
    return automaton.run([root]), ids


# The naive enumerator: embeddings by recursion, predicates by their definition.


def naive_chains(root: Element, pattern: Pattern) -> list[tuple[str, ...]]:
    """All embeddings of a pattern's steps, as node ids."""
    number = {element: i for i, element in enumerate(root.iter(etree.Element))}

    def shown(node: Node) -> str:
        return f"{number[node[0]]}" if node[1] is None else shown_attribute(number[node[0]], node[0], node[1])

    return [tuple(map(shown, chain)) for chain in _embed(None, root, pattern.steps)]


def _embed(node: Node | None, root: Element, steps: tuple[PathStep, ...]) -> Iterator[tuple[Node, ...]]:
    if not steps:
        yield ()
        return
    for below in _candidates(node, root, steps[0]):
        if steps[0].predicate is None or _holds(below, root, steps[0].predicate):
            for rest in _embed(below, root, steps[1:]):
                yield (below, *rest)


def _candidates(node: Node | None, root: Element, step: PathStep) -> Iterator[Node]:
    element = node[0] if node else None
    children = [root] if element is None else list(element.iterchildren(etree.Element))
    if step.attribute:
        owners = [*([element] if element is not None else [])]
        if step.deep:
            owners = list((element if element is not None else root).iter(etree.Element))
        yield from ((o, str(k)) for o in owners for k in o.attrib if _passes(str(k), step.test))
        return
    reached = [d for c in children for d in c.iter(etree.Element)] if step.deep else children
    yield from ((e, None) for e in reached if _passes(str(e.tag), step.test))


def _passes(tag: str, test: NameTest) -> bool:
    name = etree.QName(tag)
    return test.local in (None, name.localname) and test.namespace in (None, name.namespace or "")


def _holds(node: Node, root: Element, predicate: Predicate) -> bool:
    match predicate:
        case Exists(pattern):
            return next(_embed(node, root, pattern.steps), None) is not None
        case Compare(pattern, op, constant):
            ends = (chain[-1] if chain else node for chain in _embed(node, root, pattern.steps))
            return any(satisfies(_value(end), op, constant) for end in ends)
        case And(parts):
            return all(_holds(node, root, part) for part in parts)
        case Or(parts):
            return any(_holds(node, root, part) for part in parts)
        case Not(part):
            return not _holds(node, root, part)


def _value(node: Node) -> str:
    element, name = node
    return "".join(map(str, element.itertext(etree.Element))) if name is None else str(element.attrib[name])


class Sampler:
    """Random patterns that often match: taken from an element's own path, then generalized."""

    def __init__(self, seed: int, root: Element) -> None:
        self.random = random.Random(seed)
        self.elements = list(root.iter(etree.Element))

    def pattern(self, predicates: float = 0.3) -> Pattern:
        element = self.random.choice(self.elements)
        line = [element, *element.iterancestors()][::-1]
        return Pattern(self._steps(line, predicates, 2))

    def _steps(self, line: list[Element], predicates: float, depth: int) -> tuple[PathStep, ...]:
        steps: list[PathStep] = []
        deep = False
        for i, element in enumerate(line):
            if i + 1 < len(line) and self.random.random() < 0.25:
                deep = True
                continue
            deep = deep or self.random.random() < 0.1
            predicate = self._predicate(element, depth) if self.random.random() < predicates else None
            steps.append(PathStep(self._test(str(element.tag)), deep, False, predicate))
            deep = False
        if line and len(line[-1].attrib) and self.random.random() < 0.25:
            name = self.random.choice([str(k) for k in line[-1].attrib])
            steps.append(PathStep(self._test(name), self.random.random() < 0.2, True))
        return tuple(steps)

    def _test(self, tag: str) -> NameTest:
        name = etree.QName(tag)
        choice = self.random.random()
        if choice < 0.1:
            return NameTest(None, (name.namespace or "") if name.namespace and choice < 0.04 else None)
        return NameTest(name.localname, None if choice < 0.3 else name.namespace or "")

    def _predicate(self, element: Element, depth: int) -> Predicate:
        choice = self.random.random()
        if depth and choice < 0.15:
            return And((self._predicate(element, depth - 1), self._predicate(element, depth - 1)))
        if depth and choice < 0.3:
            return Or((self._predicate(element, depth - 1), self._predicate(element, depth - 1)))
        if depth and choice < 0.4:
            return Not(self._predicate(element, depth - 1))
        below = self.random.choice([*element.iter(etree.Element)][:40])
        if self.random.random() < 0.2:
            below = self.random.choice(self.elements)
        line = [e for e in (below, *below.iterancestors()) if e is not element and element in e.iterancestors()]
        pattern = Pattern(self._steps(line[::-1], 0.2 if depth else 0.0, depth - 1))
        if self.random.random() < 0.5:
            return Exists(pattern)
        return self._compare(pattern, below)

    def _compare(self, pattern: Pattern, below: Element) -> Predicate:
        value = "".join(map(str, below.itertext()))
        if pattern.steps and pattern.steps[-1].attribute and len(below.attrib):
            value = str(self.random.choice(list(below.attrib.values())))
        if self.random.random() < 0.5 and not ('"' in value and "'" in value):
            return Compare(pattern, self.random.choice(["=", "=", "!="]), value)
        number = float(value) if value.strip().isdigit() and len(value) < 12 else 10.0
        return Compare(pattern, self.random.choice(["=", "!=", "<", "<=", ">", ">="]), number)
