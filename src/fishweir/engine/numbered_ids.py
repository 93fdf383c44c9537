"""The ids of documents that were published without ids: the stream's name and the number of the entry.

Nobody reads most of them, and formatting them takes a tenth of the time of publishing. Those of many documents are
therefore a sequence that formats an id when it is read, as `range` does with numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

AT_ONCE = 100
"""The number of ids up to which they are a list."""


def numbered_ids(stream: str, numbers: range) -> Sequence[str]:
    """The ids of entries with consecutive numbers."""
    ids = NumberedIds(f"{stream}-", numbers)
    return list(ids) if len(numbers) <= AT_ONCE else ids


class NumberedIds(Sequence[str]):
    """Equals a list with the same ids, and becomes one by `list` or `+`."""

    def __init__(self, prefix: str, numbers: range) -> None:
        self._prefix, self._numbers = prefix, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return list(NumberedIds(self._prefix, self._numbers[place]))
        return f"{self._prefix}{self._numbers[place]}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self._prefix}{number}" for number in self._numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # like a list

    def __add__(self, other: Sequence[str]) -> list[str]:
        return [*self, *other]

    def __radd__(self, other: Sequence[str]) -> list[str]:
        return [*other, *self]

    def __repr__(self) -> str:
        return f"[{self[0]!r}, ..., {self[-1]!r}]"
