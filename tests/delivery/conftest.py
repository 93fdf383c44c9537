"""A weir with a clock that is set, and real servers."""

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
    """With numbers, and the big ones among them."""
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
    """A mail server that FISHWEIR_SMTP names."""
    with mail_server() as (box, place):
        monkeypatch.setenv("FISHWEIR_SMTP", f"smtp://{place}")
        yield box
