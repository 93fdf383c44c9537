"""Experiments collect garbage before each measurement: objects that exist when a test file starts are exempt."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    gc.collect()
    gc.freeze()
