"""The constants of one query: a slot for each position in its text, shared by the alternatives that read it."""

from __future__ import annotations

from typing import Any, Literal

from lark import Token

from fishweir.algebra.nodes import Constant, Slot
from fishweir.algebra.operators import Condition
from fishweir.languages.lexical import to_constant, unquote
from fishweir.languages.parsed import ConstantPlace
from fishweir.languages.roses.literals import KINDS, READERS, REFUSALS
from fishweir.languages.statement_text import Rejected


class Slots:
    """Slots, numbered in the order in which the binder visits them. All alternatives of a query share them: a constant
    that several of them read has one slot.
    """

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.constants: list[Constant] = []
        self.places: list[ConstantPlace] = []
        self._slots: dict[int, Slot] = {}

    def of_token(self, token: Token) -> Slot:
        """The slot of a quoted text or a number; NOTHING is the implicit empty text."""
        start = token.start_pos or 0
        if token.type == "NOTHING":
            return self.of_place("string", "", ConstantPlace(start, start, "keyword"))
        quoted = token.type == "STRING"
        constant = unquote(token) if quoted else to_constant(token)
        if constant is None:
            raise Rejected(f"the number {token} is too large", start)
        place = ConstantPlace(start, start + len(token), "quoted" if quoted else "number")
        return self.of_place("string" if quoted else "number", constant, place)

    def of_text(self, token: Token, condition: Condition) -> Slot:
        """The slot of a condition's constant. Raises Rejected if it is not of the kind that the condition requires."""
        kind: Any = KINDS[condition.constant]
        constant = READERS[kind](token)
        start = token.start_pos or 0
        if constant is None:
            raise Rejected(REFUSALS[kind].format(token), start)
        return self.of_place("string", constant, ConstantPlace(start, start + len(token), kind))

    def of_place(self, kind: Literal["string", "number"], constant: Constant, place: ConstantPlace) -> Slot:
        if place.start not in self._slots:
            self._slots[place.start] = Slot(len(self.slots), kind)
            self.slots.append(self._slots[place.start])
            self.constants.append(constant)
            self.places.append(place)
        return self._slots[place.start]
