"""Plain paths by a scanner: what most queries over documents are, read without the grammar.

In: a text such as `S/a//b[@k = 'x']/c do notify`. Out: what the grammar and the binder make of it, or None where the
text has anything else in it (variables, axes, functions, `or`, joins, errors): the grammar then decides, and says what
is wrong. A test compares the two on random texts. Paths that differ in constants only have one shape.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from fishweir.algebra.nodes import Block, Comparison, Constant, PatternNode, Shape, Slot, Source, Step, VariableOutput
from fishweir.languages.lexical import NUMBER, OPENING_QUOTES, OPERATOR, QUOTED, to_constant, to_operator, unquote
from fishweir.languages.parsed import ConstantPlace, ParsedQuery
from fishweir.languages.pieces import Piece, Rejected
from fishweir.languages.schedule import Clauses
from fishweir.languages.xscl.binding import AXES

_TAG = r"[^\W\d](?:[\w.]|-(?![->]))*+(?!:)"
_TEST = rf"@?(?:{_TAG}|\*)"
_INNER = rf"(?:\.(?!\.)|{_TEST}(?://?{_TEST})*+)"
_PREDICATE = rf"\[ *+({_INNER})(?: *+({OPERATOR}) *+((?=[0-9+\-\"'“”])(?:{QUOTED}|{NUMBER})))? *+\]"
_UNCUT = re.sub(r"\((?!\?)", "(?:", _PREDICATE)
_QUERY = re.compile(
    rf"(?!(?:select|from|where|with|for|let)(?![\w.-]))({_TAG})((?://?{_TEST}(?:{_UNCUT})*+)++)"
    r"(?:\Z|(?=\s+(?:distinct|publish|pref|do|start|every|expires?)(?![\w.-])))",
    re.IGNORECASE,
)
_STEPS = re.compile(rf"//?{_TEST}")
_MARKED = re.compile(rf"(//?{_TEST})((?:{_UNCUT})*+)")
_PREDICATES = re.compile(_PREDICATE)
_COMPARED = re.compile(rf"({OPERATOR}) *+(?:({QUOTED})|({NUMBER}))")
_NO_CLAUSES = Clauses()


def scan_query(piece: Piece) -> ParsedQuery | None:
    """The query of a plain path; None where the grammar is needed."""
    text = piece.text
    match = _QUERY.match(text)
    if match is None:
        return None
    clauses = _NO_CLAUSES if match.end() == len(text) else _clauses(text[match.end() :])
    if clauses is None:
        return None
    path, constants, places = match[2], list[Constant | None](), list[ConstantPlace]()
    if "[" in path:
        for literal in _COMPARED.finditer(text, *match.span(2)):
            quoted = literal[2] is not None
            constants.append(unquote(literal[2]) if quoted else to_constant(literal[3]))
            places.append(ConstantPlace(*literal.span(2 if quoted else 3), "quoted" if quoted else "number"))
        if None in constants:
            return None
        path = _COMPARED.sub(_without_constant, path)
    shape = _shape(match[1], path)
    return None if shape is None else ParsedQuery(shape, tuple(constants), tuple(places), clauses)  # type: ignore[arg-type]


def _without_constant(literal: re.Match[str]) -> str:
    """A comparison with a literal of the same kind, so that queries of one shape have the same text."""
    return f"{literal[1]}0" if literal[2] is None else f"{literal[1]}''"


@lru_cache(maxsize=10_000)
def _shape(source: str, path: str) -> Shape | None:
    """The shape of a path; None where attributes stand where they may not."""
    return _Builder().shape(Source(source), path)


class _Builder:
    """Slots and variables are numbered as the binder meets them (binding.py)."""

    def __init__(self) -> None:
        self.conditions: list[Comparison] = []
        self.slots: list[Slot] = []
        self.variables = 0

    def shape(self, source: Source, path: str) -> Shape | None:
        steps: list[Step] = []
        marks: list[tuple[str, list[PatternNode]]] = []
        for part in _MARKED.finditer(path):
            steps.append(_step(part[1]))
            found = self._marks(steps[-1], part[2]) if part[2] else ("", [])
            if found is None:
                return None
            marks.append(found)
        output, below = marks[-1][0] or self._variable(), marks[-1][1]
        if not _is_path(steps) or (steps[-1].is_attribute and below):
            return None
        pattern = PatternNode(steps[-1], (output,), tuple(below))
        for step, (name, children) in zip(steps[-2::-1], marks[-2::-1], strict=True):
            pattern = PatternNode(step, (name,) if name else (), (*children, pattern))
        block = Block(source, pattern)
        return Shape((block,), tuple(self.conditions), (VariableOutput(output),), tuple(self.slots))

    def _marks(self, step: Step, predicates: str) -> tuple[str, list[PatternNode]] | None:
        """The variable of a step that its predicates compare, if they do, and what they ask for below it."""
        own, children = "", list[PatternNode]()
        for inner, op, literal in _PREDICATES.findall(predicates):
            if inner == ".":
                if not op or step.is_attribute:
                    return None
                compared = own = own or self._variable()
            else:
                steps = [_step(one) for one in _STEPS.findall(f"/{inner}")]
                if not _is_path(steps, inside=True):
                    return None
                compared = self._variable() if op else ""
                below = PatternNode(steps[-1], (compared,) if op else ())
                for one in reversed(steps[:-1]):
                    below = PatternNode(one, (), (below,))
                children.append(below)
            if op:
                slot = Slot(len(self.slots), "string" if literal[0] in OPENING_QUOTES else "number")
                self.slots.append(slot)
                self.conditions.append(Comparison(compared, to_operator(op), slot))
        return own, children

    def _variable(self) -> str:
        self.variables += 1
        return f"_{self.variables}"


def _is_path(steps: list[Step], inside: bool = False) -> bool:
    """Whether attributes stand where they may: at the end, not directly below a document, and named if output."""
    last = steps[-1]
    if any(step.is_attribute for step in steps[:-1]):
        return False
    return inside or not last.is_attribute or (last.name != "*" and (len(steps) > 1 or last.is_deep))


@lru_cache(maxsize=100_000)
def _step(text: str) -> Step:
    name = text.lstrip("/")
    return Step(name.removeprefix("@"), AXES[text.startswith("//"), name[0] == "@"])


@lru_cache(maxsize=1_000)
def _clauses(text: str) -> Clauses | None:
    """The clauses behind a path; None where they are wrong, or where an error of theirs would need its place."""
    from fishweir.languages.xscl.language import GRAMMAR

    try:
        clauses: Clauses = GRAMMAR.parse(Piece(f"s{text}", 0, len(text) + 1)).clauses
    except Rejected:
        return None
    return clauses if clauses == replace(clauses, expire_at=0, preference_at=0, distinct_at=0) else None
