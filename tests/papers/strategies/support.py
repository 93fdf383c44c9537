"""Runs the same history with the default strategies and with the requested ones, and compares all results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fishweir
from fishweir import testing
from fishweir.engine.weir import Weir


@dataclass(frozen=True)
class Publish:
    stream: str
    items: Sequence[Any]
    timestamps: Sequence[float]


@dataclass(frozen=True)
class Execute:
    script: str


@dataclass(frozen=True)
class Together:
    """Publications to different streams that are one micro-batch."""

    publications: Sequence[Publish]


REOPEN = "reopen"
"""The weir is closed, and opened again with the same strategies."""

Event = Publish | Together | Execute | str
Open = Callable[[], Weir]


def play(open_weir: Open, history: Sequence[Event]) -> list[dict[str, Any]]:
    """All results of a history; each publication is a separate micro-batch."""
    weir = open_weir()
    try:
        for event in history:
            match event:
                case Execute(script):
                    weir.execute(script)
                case Publish():
                    _publish(weir, [event])
                case Together(publications):
                    _publish(weir, publications)
                case _:
                    weir.close()
                    weir = open_weir()
        return sorted((result.to_dict() for result in weir.results()), key=repr)
    finally:
        weir.close()


def _publish(weir: Weir, publications: Sequence[Publish]) -> None:
    for one in publications:
        weir.publish(one.stream, one.items, one.timestamps)
    weir.run(until_idle=True)


def inline(folder: Path, strategies: dict[str, str], parallelism: int = 1) -> Open:
    return lambda: testing.open(folder, testing.Clock(0.0), parallelism=parallelism, strategies=strategies)


def on_spark(folder: Path, strategies: dict[str, str], spark: Any) -> Open:
    return lambda: fishweir.open(folder, spark=spark, strategies=strategies)


def explained(weir_of: Open, *names: str) -> str:
    with weir_of() as weir:
        return "\n".join(weir.explain(name) for name in names)
