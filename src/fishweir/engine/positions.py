"""How far the streams of published results have been filled: for each, the last micro-batch that was read for it.

Most of them are at the same micro-batch, whether it had results for them or not, and there may be as many of them as
queries. So they share one position. Only those that are behind, as after they were created, have their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path

from fishweir.pipeline.home import read_json, write_json


class Positions:
    def __init__(self, place: Path) -> None:
        self._place = place
        self._common = -1
        self._own: dict[int, int] = {}
        """The positions of the streams that do not have the common one."""
        self._streams: Collection[int] = ()

    def update(self, streams: Collection[int], new: dict[int, int]) -> None:
        """Says which streams there are, with the positions of those that are new."""
        self._own = {id: batch for id, batch in (self._own | new).items() if id in streams}
        self._streams = streams

    def of(self, stream: int) -> int:
        return self._own.get(stream, self._common)

    def first(self) -> int:
        """The lowest of all positions."""
        shared = [self._common] if len(self._own) < len(self._streams) else []
        return min([*shared, *self._own.values()])

    def advance(self, batch: int) -> None:
        """Says that a micro-batch has been read for all streams."""
        self._common = max(self._common, batch)
        own = {id: max(position, batch) for id, position in self._own.items()}
        self._own = {id: position for id, position in own.items() if position != self._common}

    def save(self) -> None:
        positions: dict[int, list[int]] = defaultdict(list)
        for id, batch in self._own.items():
            positions[batch].append(id)
        write_json(self._place, {"all": self._common, "upto": max(self._streams), "positions": positions})

    def saved(self) -> Callable[[int], int]:
        """The written position of a stream, -1 for none. Ids ascend, so later streams are recognized by them."""
        done = read_json(self._place, {}, rebuilt="reading the results again")
        own = {id: int(batch) for batch, ids in done.get("positions", {}).items() for id in ids}
        common, upto = done.get("all", -1), done.get("upto", -1)
        return lambda id: own.get(id, common if id <= upto else -1)
