"""Path queries drawn from documents: an element's own way down from the root, loosened.

In: parsed documents and a seed. Out: XPath texts with prefixes, the same for all contestants. Steps become
wildcards or descendants by chance, some end in an attribute; those with predicates have one or two: that an
attribute or a child is there or not, or how its value compares.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from lxml import etree

from fishweir.algebra.documents import Element

KINDS = ("plain", "predicates")
DEEP, WILD, ATTRIBUTE = 0.2, 0.15, 0.2
MOST_LOOSE = 2
"""Descendant steps, and wildcards, that one query may have: more are no questions that people ask. Nor do they
stand side by side, as in `//*//*/name` or `/site/*//item[name]`: lxml takes seconds for one of those in XMark, so the
few that there would be, and not the thousands of others, would decide the contest."""
LONGEST = 60
"""Characters of a value that a query may compare with."""


class Draw:
    """An endless row of queries; the first n of them are the workload of n."""

    def __init__(self, roots: Sequence[Element], prefixes: dict[str, str], kind: str, seed: int = 1) -> None:
        self.random = random.Random(f"{kind} {seed}")
        self.prefix_of = {uri: f"{prefix}:" for prefix, uri in prefixes.items()} | {None: ""}
        self.elements = [e for root in roots for e in root.iter(etree.Element) if self._known(e)]
        self.predicates = kind == "predicates"

    def __iter__(self) -> Iterator[str]:
        while True:
            yield self.query()

    def _known(self, element: Element) -> bool:
        return all(etree.QName(e).namespace in self.prefix_of for e in (element, *element.iterancestors()))

    def query(self) -> str:
        element = self.random.choice(self.elements)
        line = [element, *element.iterancestors()][::-1]
        places = self.random.choices(range(len(line)), k=self.random.randint(1, 2)) if self.predicates else []
        text, deep, loose, wild = "", False, 0, 0
        for i, step in enumerate(line):
            last = i == len(line) - 1
            may_skip = not last and i not in places and loose < MOST_LOOSE and not text.endswith("*")
            if may_skip and self.random.random() < DEEP:
                loose, deep = loose + (not deep), True
                continue
            star = wild < MOST_LOOSE and i not in places and not deep and self.random.random() < WILD
            wild += star
            text += f"{'//' if deep else '/'}{'*' if star else self._name(str(step.tag))}"
            text += "".join(dict.fromkeys(self._predicate(step) for place in places if place == i))
            deep = False
        attributes = self._attributes(element)
        if attributes and self.random.random() < ATTRIBUTE:
            text += f"/@{self._name(self.random.choice(attributes))}"
        return text

    def _name(self, tag: str) -> str:
        name = etree.QName(tag)
        return f"{self.prefix_of[name.namespace]}{name.localname}"

    def _attributes(self, element: Element) -> list[str]:
        return [str(key) for key in element.attrib if etree.QName(str(key)).namespace in self.prefix_of]

    def _predicate(self, element: Element) -> str:
        """About an attribute, or a child; its presence or its value."""
        children = [c for c in element.iterchildren(etree.Element) if etree.QName(c).namespace in self.prefix_of]
        about = [(f"@{self._name(key)}", str(element.attrib[key])) for key in self._attributes(element)]
        about += [(self._name(str(c.tag)), "" if len(c) else c.text or "") for c in children[:8]]
        if not children and (element.text or "").strip():
            about.append((".", element.text or ""))
        if not about:
            return "[not(*)]"
        name, value = self.random.choice(about)
        short = value.strip() and len(value) <= LONGEST and '"' not in value
        if name != "." and (not short or self.random.random() < 0.2):
            return f"[{name}]" if self.random.random() < 0.8 else f"[not({name})]"
        if not short:
            return "[not(*)]"
        if value.isdigit() and len(value) < 9 and self.random.random() < 0.5:
            return f"[{name} {self.random.choice(['<', '>='])} {value}]"
        return f'[{name} = "{value}"]'
