"""Experiments collect garbage before each measurement: what there is when a file of tests begins is passed over."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    gc.collect()
    gc.freeze()
