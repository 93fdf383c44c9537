"""The outline of a state: until when it is needed mostly depends on nothing else.

A task that writes a state reports its outline, so the driver need not read the state.
"""

from __future__ import annotations

from collections.abc import Mapping

from fishweir.records import dataclass


@dataclass(frozen=True)
class Outline:
    newest: Mapping[int, float]
    """By stream, the time of its newest document in the state."""
