"""While a job runs, garbage collections skip the objects that existed when it started; afterwards they do not."""

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


def test_objects_are_exempt_until_the_job_ends(nothing_exempted: None) -> None:
    objects, cycle = LongLivedObjects(), Cycle()
    seen = weakref.ref(cycle)
    objects.begin()
    del cycle
    gc.collect()
    assert seen() is not None
    objects.end()
    gc.collect()
    assert seen() is None


def test_objects_exempted_by_the_program_stay_exempt(nothing_exempted: None) -> None:
    gc.freeze()
    objects = LongLivedObjects()
    objects.begin()
    objects.end()
    assert gc.get_freeze_count()
