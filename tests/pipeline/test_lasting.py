"""While a job runs, garbage collections skip what was there when it started; then they see it again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from fishweir.pipeline.lasting import LastingObjects


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
    lasting, cycle = LastingObjects(), Cycle()
    seen = weakref.ref(cycle)
    lasting.begin()
    del cycle
    gc.collect()
    assert seen() is not None
    lasting.end()
    gc.collect()
    assert seen() is None


def test_what_a_program_has_exempted_stays_so(nothing_exempted: None) -> None:
    gc.freeze()
    lasting = LastingObjects()
    lasting.begin()
    lasting.end()
    assert gc.get_freeze_count()
