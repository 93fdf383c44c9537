"""Random histories of timers, compared with a naive model: what is delivered, when, and in which deliveries.

Documents arrive, the clock jumps forwards and backwards, the machine sleeps, the home is reopened; queries and
subscriptions with and without `start`, `every` and `expire` are added, paused, resumed, changed and dropped.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fishweir import testing
from fishweir.pipeline.result import Result

BEGAN = 10_000.0
Deliveries = dict[str, list[tuple[float, list[int]]]]
"""By target, the times and contents of deliveries."""


def note(into: list[tuple[float, list[int]]], now: float, values: Sequence[int]) -> None:
    """Records a delivery; everything delivered at one time counts as one delivery."""
    at_once = into.pop()[1] if into and into[-1][0] == now else []
    into.append((now, sorted([*at_once, *values])))


@dataclass
class Going:
    """A route of results to a target in the model."""

    target: str
    low: int
    anchor: float
    start: float
    every: float
    expire: float
    own: bool
    """Whether it is the action of its own query instead of a subscription to another."""
    due: float = 0.0
    seen: list[int] = field(default_factory=list)
    """Results since the last delivery."""
    state: str = "on"
    begun: bool = False

    def __post_init__(self) -> None:
        self.due = self.grid(self.anchor)

    def grid(self, now: float) -> float:
        """The next due time."""
        if not self.every:
            return now
        due = self.anchor - (self.anchor - now) // self.every * self.every
        while due <= now:
            due += self.every
        return due


class Model:
    def __init__(self) -> None:
        self.now = self.before = BEGAN
        self.goings: dict[str, Going] = {}
        self.delivered: Deliveries = defaultdict(list)

    def settle(self, values: Sequence[int]) -> None:
        """Delivers everything that is due at the current time."""
        if self.now < self.before:
            for one in self.goings.values():
                if one.due > self.now + one.every and (one.start <= self.now or (one.own and one.begun)):
                    one.due = one.grid(self.now)
        self.before = self.now
        for one in self.goings.values():
            if one.state != "over" and self.now >= one.expire:
                one.state, one.due = "over", self.now
            one.begun = (one.own and one.begun) or self.now >= one.start
            if one.state == "on" and one.begun:
                one.seen += [value for value in values if value > one.low]
            if one.due <= self.now or not one.every:
                self.fire(one)

    def fire(self, one: Going) -> None:
        if one.seen:
            note(self.delivered[one.target], self.now, one.seen)
        one.seen = []
        one.due = one.grid(self.now)


class History:
    def __init__(self, home: Path, seed: int) -> None:
        self.draw, self.home, self.clock, self.model = random.Random(seed), home, testing.Clock(BEGAN), Model()
        self.delivered: Deliveries = defaultdict(list)
        self.names = 0
        self.log: list[str] = []
        self.weir = self.open()
        self.weir.execute("create stream R (x int); create query base as select x from R where x > 10")

    def open(self) -> testing.Weir:
        weir = testing.open(self.home, clock=self.clock)
        history = self

        class Note:
            """An output that records its results; it cannot be rewound."""

            def __init__(self, target: str) -> None:
                self.target = target

            def position(self) -> None:
                return None

            def rewind(self, position: int) -> None:
                raise AssertionError("it has no position")

            def deliver(self, results: Sequence[Result]) -> None:
                values = [result.output["x"] for result in results]  # type: ignore[index]
                note(history.delivered[self.target], history.clock.now, values)

        weir.register_action("note", Note)
        return weir

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            what = self.draw.choice(
                [self.come, self.come, self.publish, self.publish, self.wait, self.wait, self.change]
            )
            values = what() or []
            self.model.now = self.clock.now
            while self.weir.step():
                pass
            self.model.settle(values)
            assert self.delivered == self.model.delivered, "\n".join(self.log)

    def publish(self) -> list[int]:
        values = [self.draw.randint(0, 40) for _ in range(self.draw.randint(1, 3))]
        self.log.append(f"{self.clock.now}: publish {values}")
        self.weir.publish("R", [{"x": value} for value in values])
        return values

    def wait(self) -> None:
        kind = self.draw.random()
        if kind < 0.12:
            self.clock.advance(-self.draw.randint(50, 1000))
        elif kind < 0.25:
            self.weir.close()
            self.clock.advance(self.draw.choice([0, 500]))
            self.weir = self.open()
        else:
            self.clock.advance(self.draw.choice([10, 50, 100, 130, 700]))
        self.log.append(f"{self.clock.now}: it is")

    def come(self) -> None:
        self.names += 1
        now, target = self.clock.now, f"t{self.names}"
        every = float(self.draw.choice([0, 0, 100, 100, 150, 400]))
        start = now + self.draw.choice([0, 0, 0, 200])
        expire = self.draw.choice([float("inf")] * 3 + [start + 250])
        own, low = self.draw.random() < 0.5, 10
        text = f"subscribe to base output note '{target}'"
        if own:
            low = self.draw.randint(0, 30)
            text = f"create query q{self.names} as select x from R where x > {low} do note '{target}'"
        text += f" start '{start}'" if start > now else ""
        text += f" every {every:g}" if every else ""
        text += f" expire '{expire}'" if expire < float("inf") else ""
        self.log.append(f"{now}: {text}")
        self.weir.execute(text)
        self.model.goings[target] = Going(target, low, start, start if start > now else -1.0, every, expire, own)

    def change(self) -> None:
        alive = [
            one for one in self.model.goings.values() if one.state in ("on", "paused") and one.start <= self.clock.now
        ]
        if not alive:
            return
        one = self.draw.choice(alive)
        if one.expire <= self.clock.now:
            return
        what: Any = f"q{one.target[1:]}" if one.own else self.subscription(one.target)
        act = self.draw.choice(
            ["pause", "pause", "drop", "act", "replace"] if one.state == "on" else ["resume"] * 3 + ["drop"]
        )
        if act in ("act", "replace") and not one.own:
            return
        self.log.append(f"{self.clock.now}: {act} {one.target}")
        getattr(self, f"to_{act}")(one, what)

    def to_pause(self, one: Going, what: Any) -> None:
        self.weir.pause(what)
        one.state = "paused"

    def to_resume(self, one: Going, what: Any) -> None:
        self.weir.resume(what)
        one.state = "on"

    def to_drop(self, one: Going, what: Any) -> None:
        if one.own:
            self.weir.drop(what)
        else:
            self.weir.execute(f"unsubscribe from base output note '{one.target}'")
        del self.model.goings[one.target]

    def to_act(self, one: Going, what: str) -> None:
        self.weir.act(what, f"do note '{one.target}' every 70")
        self.to_go_on(one, one.low, 70.0)

    def to_replace(self, one: Going, what: str) -> None:
        self.weir.replace(f"create query {what} as select x from R where x > 35 do note '{one.target}' every 120")
        one.expire = float("inf")
        self.to_go_on(one, 35, 120.0)

    def to_go_on(self, one: Going, low: int, every: float) -> None:
        """The pending results are delivered immediately, later ones by the new schedule."""
        if one.seen:
            note(self.model.delivered[one.target], self.clock.now, one.seen)
        one.seen, one.low, one.every, one.anchor = [], low, every, self.clock.now
        one.due = one.grid(self.clock.now)

    def subscription(self, target: str) -> int:
        (found,) = [one.id for one in self.weir.subscriptions() if one.target == target]
        return found


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_the_model(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "home", seed)
    history.go_on(50)
    history.weir.close()
