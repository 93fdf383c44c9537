"""All kinds of `NOT FOLLOWED BY` queries together, registered at random moments: each equals its definition."""

from __future__ import annotations

import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fishweir import testing
from fishweir.engine import absences, backfill_run

LATE, T = 4, 6
STREAMS = f"""
    create stream S timestamp /*/t late by {LATE};
    create stream P (k int, v int, t double) timestamp t late by {LATE};
    create stream Q (k int, v int, t double) timestamp t late by {LATE};
"""


@dataclass(frozen=True)
class Item:
    stream: str
    kind: str
    time: int
    keys: tuple[int, ...]
    value: int
    id: str = ""

    @property
    def content(self) -> Any:
        if self.stream != "S":
            return {"k": self.keys[0], "v": self.value, "t": float(self.time)}
        keys = "".join(f"<k>{key}</k>" for key in self.keys)
        return f"<{self.kind}><t>{self.time}</t>{keys}<v>{self.value}</v></{self.kind}>"


Items = Sequence[Item]
Found = set[tuple[str, float]]
Test = Callable[[Item], bool]
Comparison = Callable[[Item, Item], bool]


def is_a(one: Item) -> bool:
    return (one.stream, one.kind) == ("S", "a")


def is_b(one: Item) -> bool:
    return (one.stream, one.kind) == ("S", "b")


def of(stream: str) -> Test:
    return lambda one: one.stream == stream


def same(one: Item, other: Item) -> bool:
    return not set(one.keys).isdisjoint(other.keys)


def within(begin: float, end: float, seconds: float) -> bool:
    return 0 < end - begin <= seconds


def alone(first: Test, second: Test, compared: Comparison = same) -> Callable[[Items], Found]:
    def found(items: Items) -> Found:
        others = [one for one in items if second(one)]
        return {
            (one.id, one.time + float(T))
            for one in filter(first, items)
            if not any(within(one.time, other.time, T) and compared(one, other) for other in others)
        }

    return found


def not_followed_by_pairs(items: Items) -> Found:
    pairs = product(filter(is_b, items), filter(of("Q"), items))
    joined = [(y, z) for y, z in pairs if same(y, z) and within(y.time, z.time, 3)]
    firsts = (x for x in items if is_a(x))
    return {
        (x.id, x.time + float(T))
        for x in firsts
        if not any(same(x, y) and within(x.time, z.time, T) for y, z in joined)
    }


def twice(items: Items) -> Found:
    by_id, third = {one.id: one for one in items}, [one for one in items if one.stream == "Q"]
    return {
        (id, end + 3)
        for id, end in alone(is_a, is_b)(items)
        if not any(within(end, z.time, 3) and same(by_id[id], z) for z in third)
    }


A_OR = "S//a[k = 1 or v = 2]->x"
B_OR = "S//b[k = 1 or v = 1]->y"
KINDS: dict[str, tuple[str, Callable[[Items], Found]]] = {
    "equal": (f"S//a->x[k->u] NOT FOLLOWED BY{{u = w, {T}}} S//b[k->w]", alone(is_a, is_b)),
    "any": (f"S//a NOT FOLLOWED BY{{{T}}} S//b", alone(is_a, is_b, lambda x, y: True)),
    "less": (f"S//a->x NOT FOLLOWED BY{{x/v < y/v, {T}}} S//b->y", alone(is_a, is_b, lambda x, y: x.value < y.value)),
    "either": (
        f"{A_OR} NOT FOLLOWED BY{{x/k = y/k or x/v = y/v, {T}}} {B_OR}",
        alone(
            lambda x: is_a(x) and (1 in x.keys or x.value == 2),
            lambda y: is_b(y) and (1 in y.keys or y.value == 1),
            lambda x, y: same(x, y) or x.value == y.value,
        ),
    ),
    "itself": (f"P->x NOT FOLLOWED BY{{x/k = y/k, {T}}} P->y", alone(of("P"), of("P"))),
    "tuples": (f"P->x NOT FOLLOWED BY{{x/k = y/k, {T}}} Q->y", alone(of("P"), of("Q"))),
    "mixed": (f"Q->x NOT FOLLOWED BY{{x/k = y/k, {T}}} S//b->y", alone(of("Q"), is_b)),
    "join": (
        f"S//a->x NOT FOLLOWED BY{{x/k = y/k, {T}}} (S//b->y FOLLOWED BY{{y/k = z/k, 3}} Q->z)",
        not_followed_by_pairs,
    ),
    "twice": (
        f"S//a->x NOT FOLLOWED BY{{x/k = y/k, {T}}} S//b->y NOT FOLLOWED BY{{x/k = z/k, 3}} Q->z",
        twice,
    ),
}


def arriving(pick: random.Random, count: int) -> list[Item]:
    items, numbers, fronts = list[Item](), Counter[str](), defaultdict[str, int](int)
    for i in range(count):
        stream = pick.choice("SSSPQQ")
        time = max(0, i + pick.randint(-3, 3), fronts[stream] - LATE)
        fronts[stream], numbers[stream] = max(fronts[stream], time), numbers[stream] + 1
        keys = tuple(pick.sample(range(3), 1 if stream != "S" or pick.random() < 0.8 else 2))
        id = f"{stream}-{numbers[stream]}"
        items.append(Item(stream, pick.choice("aab"), time, keys, pick.randint(0, 2), id))
    return items


@pytest.mark.parametrize("seed", [0, 6])
def test_each_equals_its_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    pick = random.Random(seed)
    monkeypatch.setattr(absences, "SAVE_EVERY", 1)
    monkeypatch.setattr(backfill_run, "ENTRIES_PER_STEP", pick.choice([1, 5]))
    items, home = arriving(pick, 30), tmp_path / "home"
    seen = {f"{kind}_{n}": n * pick.randint(1, 20) for kind in KINDS for n in range(2)}
    """The number of items before the registration."""
    past = {name for name, at in seen.items() if at and pick.random() < 0.5}
    texts = {name: KINDS[name[:-2]][0] + (" start '1970-01-01'" if name in past else "") for name in seen}

    def opened() -> testing.Weir:
        return testing.open(home, documents_per_batch=pick.choice([2, 100]))

    weir = opened()
    weir.execute(STREAMS)
    for at, item in enumerate(items):
        new = [f"create query {name} as {texts[name]}" for name in seen if seen[name] == at]
        if new:
            weir.run(until_idle=True)
            weir.execute(";".join(new))
        weir.publish(item.stream, [item.content])
        if pick.random() < 0.4:
            weir.step()
        if at % 8 == 7:  # what a crash leaves, or an end
            copied = pick.random() < 0.5 and bool(shutil.copytree(home, tmp_path / "copy"))
            weir.close()
            if copied:
                shutil.rmtree(home)
                (tmp_path / "copy").rename(home)
            weir = opened()
    for time in (1_000, 2_000, 3_000):
        for stream in "SPQ":
            weir.publish(stream, [Item(stream, "c", time, (time,), 9).content])
        weir.run(until_idle=True)
    for name, at in seen.items():
        results = [(r.documents[0], r.timestamp, repr(r.bindings)) for r in weir.results(name) if r.timestamp < 500]
        expected = KINDS[name[:-2]][1](items if name in past else items[at:])
        assert {one[:2] for one in results} == expected, name
        assert len(results) == len(set(results)), name
    weir.close()
