"""A weir with a settable clock, and real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.testing import Clock, Weir
from tests.delivery.servers import Hooks, Mailbox, hook_server, mail_server


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def weir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Weir]:
    """A weir with a stream of numbers, and a query for the big ones."""
    monkeypatch.chdir(tmp_path)
    with testing.open(tmp_path / "home", clock=clock) as opened:
        opened.execute("create stream R (x int); create query big as select x from R where x > 5")
        yield opened


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with hook_server() as server:
        yield server


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """A mail server, set as FISHWEIR_SMTP."""
    with mail_server() as (box, place):
        monkeypatch.setenv("FISHWEIR_SMTP", f"smtp://{place}")
        yield box
