"""While a job runs, garbage collections skip what was there when it started; then they see it again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from fishweir.pipeline.long_lived import LongLivedObjects


@pytest.fixture
def nothing_exempted() -> Iterator[None]:
    before = gc.get_freeze_count()
    gc.unfreeze()
    yield
    gc.unfreeze()
    if before:
        gc.freeze()


class Cycle:
    def __init__(self) -> None:
        self.own = self


def test_until_it_ends(nothing_exempted: None) -> None:
    objects, cycle = LongLivedObjects(), Cycle()
    seen = weakref.ref(cycle)
    objects.begin()
    del cycle
    gc.collect()
    assert seen() is not None
    objects.end()
    gc.collect()
    assert seen() is None


def test_what_a_program_has_exempted_stays_so(nothing_exempted: None) -> None:
    gc.freeze()
    objects = LongLivedObjects()
    objects.begin()
    objects.end()
    assert gc.get_freeze_count()
