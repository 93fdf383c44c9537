"""Parses XPath texts into patterns, for the fragment that the shared automaton supports.

In: a text such as `/site//person[profile/@income > 50000 and not(homepage)]/name`, the namespace of each prefix, and
whether a name without a prefix matches any namespace. Out: a Pattern, or a QuerySyntaxError with the position. The
fragment consists of `/`, `//`, names, `*`, `@`, `.`, and predicates with `and`, `or`, `not()`, existence and
comparisons with a constant.

Unlike in XPath 1.0, a value that is not a number satisfies no numeric comparison, including `!=`, and numbers may have
a sign and an exponent, as everywhere in Fishweir.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from fishweir.algebra.nodes import MIRRORED, OPERATORS, Constant, Operator
from fishweir.algebra.simple_paths import NAME_FOLLOWS, NAME_START
from fishweir.errors import QuerySyntaxError
from fishweir.evaluate.witnesses.automaton.pattern import (
    Compare,
    Exists,
    NameTest,
    Not,
    PathStep,
    Pattern,
    Predicate,
    conjunction,
    disjunction,
    patterns_in,
)

NCNAME = f"[{NAME_START}][{NAME_FOLLOWS}]*"
TOKEN = re.compile(
    rf"\s*(?:(?P<name>{NCNAME}(?::(?!:)(?:{NCNAME}|\*))?)|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<number>-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<sign>//|/|::|\.\.|[.@*\[\]()=,|$+-]|!=|<=|>=|<|>)|(?P<end>$))"
)
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
STEP = "a name, '*', '@' or '.'"
NOT_SUPPORTED = {
    "..": "the parent axis '..' is not supported: put the condition on the parent",
    "|": "a union '|' is not one path: register each path",
    "$": "variables are not supported in a path",
    "::": "axes are written '/', '//', '@' and '.' only",
}


class Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse_xpath(text: str, namespaces: Mapping[str, str] | None = None, any_namespace: bool = False) -> Pattern:
    """The pattern of an absolute path."""
    return _Parser(text, namespaces or {}, any_namespace).whole()


class _Parser:
    def __init__(self, text: str, namespaces: Mapping[str, str], any_namespace: bool) -> None:
        self.text, self.namespaces = text, {"xml": XML_NAMESPACE, **namespaces}
        self.default = None if any_namespace else ""
        self.tokens, self.next = self._tokens(), 0

    def _tokens(self) -> list[Token]:
        tokens: list[Token] = []
        at = 0
        while not tokens or tokens[-1].kind != "end":
            found = TOKEN.match(self.text, at)
            if found is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                quote = self.text[at] in "\"'"
                raise self._error(
                    "this string has no closing quote" if quote else "this character is not allowed in a path", at
                )
            kind = str(found.lastgroup)
            tokens.append(Token(kind, found[kind], found.start(kind)))
            at = found.end()
        return tokens

    def _error(self, message: str, at: int) -> QuerySyntaxError:
        line = self.text.count("\n", 0, at) + 1
        return QuerySyntaxError(message, self.text, line, at - self.text.rfind("\n", 0, at))

    def _expected(self, what: str) -> QuerySyntaxError:
        token = self.tokens[self.next]
        if token.text in NOT_SUPPORTED:
            return self._error(NOT_SUPPORTED[token.text], token.at)
        found = f"'{token.text}'" if token.text else "the end"
        return self._error(f"expected {what}, found {found}", token.at)

    def _peek(self, *texts: str) -> bool:
        token = self.tokens[self.next]
        return token.kind in ("sign", "name") and token.text in texts

    def _take(self, *texts: str) -> bool:
        found = self._peek(*texts)
        self.next += found
        return found

    def whole(self) -> Pattern:
        if not self._peek("/", "//"):
            raise self._expected("'/' or '//': a path starts at the document")
        pattern = Pattern(self._steps(()))
        if self.tokens[self.next].kind != "end":
            raise self._expected("'/', '//', '[' or the end")
        if not pattern.steps:
            raise self._error("the path selects the document itself: name an element", 0)
        return pattern

    def _steps(self, steps: tuple[PathStep, ...]) -> tuple[PathStep, ...]:
        while self._peek("/", "//"):
            deep = self.tokens[self.next].text == "//"
            self.next += 1
            if steps and steps[-1].attribute:
                raise self._error("an attribute has no children", self.tokens[self.next - 1].at)
            steps = self._step(steps, deep)
        return steps

    def _step(self, steps: tuple[PathStep, ...], deep: bool) -> tuple[PathStep, ...]:
        if self._take("."):
            if deep:
                raise self._error("'//.' is not supported: write '//*'", self.tokens[self.next - 1].at)
            return (*steps[:-1], self._predicates(steps[-1])) if steps else steps
        attribute = self._take("@")
        return (*steps, self._predicates(PathStep(self._name(attribute), deep, attribute)))

    def _name(self, attribute: bool) -> NameTest:
        if self._take("*"):
            return NameTest(None)
        token = self.tokens[self.next]
        if token.kind != "name":
            raise self._expected("an attribute's name or '*'" if attribute else STEP)
        self.next += 1
        if self._peek("(", "::"):
            shown = f"{token.text}{self.tokens[self.next].text}"
            raise self._error(f"'{shown}' is not supported: a path has names, '*', '@' and '.'", token.at)
        prefix, colon, local = token.text.rpartition(":")
        if not colon:
            return NameTest(local, self.default)
        if prefix not in self.namespaces:
            raise self._error(f"no namespace is given for the prefix '{prefix}'", token.at)
        return NameTest(None if local == "*" else local, self.namespaces[prefix])

    def _predicates(self, step: PathStep) -> PathStep:
        found = [step.predicate] if step.predicate else []
        while self._take("["):
            at = self.tokens[self.next].at
            predicate = self._or()
            if not self._take("]"):
                raise self._expected("']', 'and', 'or' or a comparison")
            if step.attribute and any(p.steps for p in patterns_in(predicate)):
                raise self._error("an attribute has no children", at)
            found.append(predicate)
        return replace(step, predicate=conjunction(found)) if found else step

    def _or(self) -> Predicate:
        parts = [self._and()]
        while self._take("or"):
            parts.append(self._and())
        return disjunction(parts)

    def _and(self) -> Predicate:
        parts = [self._term()]
        while self._take("and"):
            parts.append(self._term())
        return conjunction(parts)

    def _term(self) -> Predicate:
        if self._peek("not") and self.tokens[self.next + 1].text == "(":
            self.next += 1
            return Not(self._parenthesis())
        if self._peek("("):
            return self._parenthesis()
        return self._comparison()

    def _parenthesis(self) -> Predicate:
        self.next += 1
        inner = self._or()
        if not self._take(")"):
            raise self._expected("')', 'and', 'or' or a comparison")
        return inner

    def _comparison(self) -> Predicate:
        if self.tokens[self.next].kind in ("number", "text"):
            constant, at = self._constant(), self.next
            if (mirrored := self._operator()) is None:
                raise self._error("positions are not supported: compare with a path", self.tokens[at - 1].at)
            return self._compare(self._relative(), MIRRORED[mirrored], constant, at)
        pattern, at = self._relative(), self.next
        op = self._operator()
        return self._compare(pattern, op, self._constant(), at) if op else Exists(pattern)

    def _compare(self, pattern: Pattern, op: Operator, constant: Constant, at: int) -> Predicate:
        if isinstance(constant, str) and op not in ("=", "!="):
            raise self._error("a string can be compared with '=' or '!=' only", self.tokens[at].at)
        return Compare(pattern, op, constant)

    def _operator(self) -> Operator | None:
        token = self.tokens[self.next]
        op = next((op for op in OPERATORS if token.kind == "sign" and token.text == op), None)
        self.next += op is not None
        return op

    def _constant(self) -> Constant:
        token = self.tokens[self.next]
        if token.kind not in ("text", "number"):
            raise self._expected("a quoted string or a number")
        self.next += 1
        return token.text[1:-1] if token.kind == "text" else float(token.text)

    def _relative(self) -> Pattern:
        if self._peek("/", "//"):
            raise self._expected(f"{STEP}: a path in a predicate starts at its node ('.//' for below)")
        if self._take("."):
            if self._peek("["):
                raise self._expected("a step or a comparison: write the condition itself")
            return Pattern(self._steps(()))
        return Pattern(self._steps(self._step((), False)))
