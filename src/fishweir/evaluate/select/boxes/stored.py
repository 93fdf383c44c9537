"""An index of regions that consists of its arrays: built from regions, or mapped from a segment file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from fishweir.evaluate.arrays import read_only


class StoredIndex(ABC):
    """A subclass builds the arrays in its constructor, and reads its attributes from them in `_attach`."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = read_only(arrays)
        self._attach(self._arrays)

    @classmethod
    def read(cls, arrays: Mapping[str, Any]) -> Self:
        index = cls.__new__(cls)
        StoredIndex.__init__(index, arrays)
        return index

    @abstractmethod
    def _attach(self, arrays: Mapping[str, Any]) -> None:
        """Sets the attributes that matching uses, as views of the arrays."""

    def arrays(self) -> Mapping[str, Any]:
        return self._arrays
