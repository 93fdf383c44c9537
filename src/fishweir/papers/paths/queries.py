"""Draws path queries like YFilter's generator, by a random walk down a document.

In: parsed documents and a seed. Out: XPath texts with prefixes, the same for all contestants. A query starts at the
document element, or below it with `//`, and has up to DEPTH steps. A step uses `//` with probability DEEP, skipping
some levels, and its name becomes `*` with probability WILD, independently. These are the parameters of the experiments
in Diao et al., Path Sharing and Predicate Evaluation for High-Performance XML Filtering (TODS 2003): D = 6, W = 0.2, DS
= 0.2, names without skew. The other choices differ from YFilter's: the walk follows the documents' own structure, not a
DTD; lengths are uniform up to D; queries are distinct, so that N queries are N to evaluate (as drawn, 10,000 have about
3,000 different ones, which favours lxml); some end in an attribute. Queries with predicates have one or two (P): a
comparison with the value of an attribute, of a child or of the element itself, as in the document.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from lxml import etree

from fishweir.algebra.documents import Element

KINDS = ("plain", "predicates")
DEPTH, WILD, DEEP, ATTRIBUTE = 6, 0.2, 0.2, 0.2
FURTHER = 0.5
"""Probability that a `//` skips one more level."""
PATIENCE = 100_000
"""Number of draws without a new query after which the drawing ends."""
LONGEST = 60
"""Maximum number of characters of a value that a query compares with."""

Compared = tuple[str, str]
"""The operand of a predicate, and its value in the document."""


class Draw:
    """A sequence of distinct queries. The first n of them are the workload of size n."""

    def __init__(self, roots: Sequence[Element], prefixes: dict[str, str], kind: str, seed: int = 1) -> None:
        self.random = random.Random(f"{kind} {seed}")
        self.prefix_of = {uri: f"{prefix}:" for prefix, uri in prefixes.items()} | {None: ""}
        self.roots = [root for root in roots if self._known(str(root.tag))]
        self.predicates = kind == "predicates"
        self._below: dict[Element, list[list[Element]]] = {}

    def __iter__(self) -> Iterator[str]:
        """Ends when the documents yield no more new queries."""
        drawn: set[str] = {""}
        in_vain = 0
        while in_vain < PATIENCE:
            text = self.query()
            in_vain = in_vain + 1 if text in drawn else 0
            if not in_vain:
                drawn.add(text)
                yield text

    def query(self) -> str:
        """A text; empty if predicates are required and the walk found nothing to compare."""
        steps = self._walk()
        if not steps:
            return ""
        compared = [self._compared(element) for _, element in steps]
        places = [i for i, about in enumerate(compared) if about]
        if self.predicates and not places:
            return ""
        chosen = sorted(self.random.choices(places, k=self.random.randint(1, 2))) if self.predicates else []
        text = ""
        for i, (axis, element) in enumerate(steps):
            name = "*" if self.random.random() < WILD else self._name(str(element.tag))
            predicates = [self._predicate(*self.random.choice(compared[i])) for place in chosen if place == i]
            text += f"{axis}{name}{''.join(dict.fromkeys(predicates))}"
        attributes = self._attributes(steps[-1][1])
        if attributes and self.random.random() < ATTRIBUTE:
            text += f"/@{self._name(self.random.choice(attributes))}"
        return text

    def _walk(self) -> list[tuple[str, Element]]:
        """The axes and elements of the steps, from a document element down."""
        steps: list[tuple[str, Element]] = []
        below = [[self.random.choice(self.roots)]]
        for _ in range(self.random.randint(1, DEPTH)):
            deep = self.random.random() < DEEP
            element = self._one(below)
            while deep and self.random.random() < FURTHER and (under := self._children(element)):
                element = self._one(under)
            steps.append(("//" if deep else "/", element))
            below = self._children(element)
            if not below:
                break
        return steps

    def _one(self, by_name: list[list[Element]]) -> Element:
        """A random element, with equal probability for each name."""
        return self.random.choice(self.random.choice(by_name))

    def _children(self, element: Element) -> list[list[Element]]:
        """The children by name, without those in namespaces that have no prefix here."""
        found = self._below.get(element)
        if found is None:
            by_name: dict[str, list[Element]] = {}
            for child in element.iterchildren(etree.Element):
                if self._known(str(child.tag)):
                    by_name.setdefault(str(child.tag), []).append(child)
            found = self._below[element] = list(by_name.values())
        return found

    def _known(self, tag: str) -> bool:
        return etree.QName(tag).namespace in self.prefix_of

    def _name(self, tag: str) -> str:
        name = etree.QName(tag)
        return f"{self.prefix_of[name.namespace]}{name.localname}"

    def _attributes(self, element: Element) -> list[str]:
        return [str(key) for key in element.attrib if self._known(str(key))]

    def _compared(self, element: Element) -> list[Compared]:
        """The possible operands of a predicate on an element: an attribute, a child's text, its own text."""
        if not self.predicates:
            return []
        about = [(f"@{self._name(key)}", str(element.attrib[key])) for key in self._attributes(element)]
        children = [some[0] for some in self._children(element) if not len(some[0])]
        about += [(self._name(str(child.tag)), child.text or "") for child in children]
        if not len(element):
            about.append((".", element.text or ""))
        return [(name, value) for name, value in about if _is_short(value)]

    def _predicate(self, name: str, value: str) -> str:
        if value.isdigit() and len(value) < 9 and self.random.random() < 0.5:
            return f"[{name} {self.random.choice(['<', '>='])} {value}]"
        return f'[{name} = "{value}"]'


def _is_short(value: str) -> bool:
    return bool(value.strip()) and len(value) <= LONGEST and '"' not in value
