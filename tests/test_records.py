"""Frozen dataclasses of Fishweir behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from fishweir.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    tags: tuple[str, ...] = ()
    seen: list[int] = dataclasses.field(default_factory=list, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    x: int
    y: int = 0
    tags: tuple[str, ...] = ()
    seen: list[int] = dataclasses.field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True)
class One:
    value: float

    def __post_init__(self) -> None:
        assert self.value is not None


@dataclass(frozen=True, eq=False)
class ByIdentity:
    value: int


@dataclass(frozen=True)
class Extended(One):
    more: int = 0


@pytest.mark.parametrize(
    "use",
    [
        lambda kind: kind(1) == kind(1),
        lambda kind: kind(1) == kind(2),
        lambda kind: kind(1, seen=[1]) == kind(1, seen=[2]),
        lambda kind: kind(1) == (1, 0, ()),
        lambda kind: hash(kind(1, 2)) == hash(kind(1, 2, seen=[3])),
        lambda kind: len({kind(1), kind(1, 0), kind(1, 1)}),
        lambda kind: repr(kind(1, tags=("a",))).partition("(")[2],
        lambda kind: dataclasses.astuple(dataclasses.replace(kind(1, 2), y=5)),
        lambda kind: [one.name for one in dataclasses.fields(kind)],
        lambda kind: kind.__match_args__,
        lambda kind: kind(1).seen is kind(1).seen,
        lambda kind: dataclasses.astuple(copy.deepcopy(kind(1, 2, ("a",), [4]))),
        lambda kind: dataclasses.astuple(pickle.loads(pickle.dumps(kind(1, 2, ("a",), [4])))),
        lambda kind: hasattr(kind(1), "__dict__"),
    ],
)
def test_equals_the_standard_library(use: Callable[[Any], Any]) -> None:
    assert use(Point) == use(Standard)


@pytest.mark.parametrize(
    "use",
    [
        lambda kind: kind(),
        lambda kind: kind(1, 2, (), [], 5),
        lambda kind: kind(1, z=2),
        lambda kind: setattr(kind(1), "x", 2),
        lambda kind: delattr(kind(1), "x"),
    ],
)
def test_raises_as_the_standard_library(use: Callable[[Any], Any]) -> None:
    raised = []
    for kind in (Point, Standard):
        with pytest.raises((TypeError, dataclasses.FrozenInstanceError)) as error:
            use(kind)
        raised.append((error.type, str(error.value).replace("Standard", "Point")))
    assert raised[0] == raised[1]


def test_a_single_field_is_compared_as_in_a_tuple() -> None:
    unequal = float("nan")
    assert One(unequal) == One(unequal)
    assert One(1.0) != One(2.0)
    with pytest.raises(AssertionError):
        One(None)  # type: ignore[arg-type]


def test_without_eq_instances_are_compared_by_identity() -> None:
    assert ByIdentity(1) != ByIdentity(1)
    assert len({ByIdentity(1), ByIdentity(1)}) == 2


def test_a_class_can_be_extended() -> None:
    assert Extended(1.0, 2) == Extended(1.0, more=2)
    assert Extended(1.0, 2) != Extended(1.0, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Extended(1.0).more = 3  # type: ignore[misc]


def test_the_constructor_is_compiled_on_first_use() -> None:
    @dataclass(frozen=True)
    class Fresh:
        value: int

    before = Fresh.__init__
    assert Fresh(1).value == 1
    assert Fresh.__init__ is not before
    assert Fresh(value=2).value == 2
