"""A home with a bit of everything, which tests damage.

It has selections, joins in XSCL and SQL, an annotation feed, an absence, a published stream, a changing file, an
appended file, and waiting deliveries. An undamaged copy defines the expected results.
"""

from __future__ import annotations

import ctypes
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from fishweir import sealed, testing
from fishweir.evaluate.plan.plan import forget_plans
from fishweir.intake import appending
from fishweir.intake.sources import changing
from fishweir.pipeline import commits, home
from fishweir.pipeline.states import forget_states
from fishweir.pipeline.writer import forget_sets
from fishweir.testing import Clock
from tests.delivery.servers import Hooks, Mailbox

SCRIPT = """
create stream R (k int, x int); create stream S (k int, y int); create stream D; create stream N; create stream P;
create stream A timestamp /*/t late by 4;
create stream Q from 'quotes.xml' rows /Quotes/Quote key Symbol every 0 seconds;
create query big as select x from R where x > 5 do note;
create query small as select x from R where x < 3 do append 'small.jsonl';
create query pairs as select R.x as x, S.y as y from R [range 1000], S [range 1000] where R.k = S.k and R.x > 2;
create query blogs as D//blog[title->t][author->a] FOLLOWED BY{a = a2, 1000} D//blog[title->t2][author->a2];
create query gone as A//a->x[k->u] NOT FOLLOWED BY{u = v, 5} A//b[k->v];
create stream F (n int) from 'in/*.csv';
create query numbers as select n from F where n > 1;
create query falling as select Symbol from Q where Price < 0.95 * old.Price;
create feed seen from N as $main join last 3 days on P with $main[title similar window.title];
D//blog[author = '1']/title->t publish firsts;
create query again as firsts//title->t;
subscribe to big output http '{url}';
subscribe to blogs output mail 'reader@example.org';
"""
Found = Counter[Any]
BEGAN, DAY = 1_000_000.0, 86_400.0


class Desk:
    """A weir in a folder, and the results that it delivered to a function."""

    def __init__(self, folder: Path, days: int = 9) -> None:
        self.folder, self.clock = folder, Clock(BEGAN + DAY * days)
        self.delivered: Found = Counter()
        self.weir = testing.open(folder / "home", self.clock, documents_per_batch=40)
        self.weir.action("note", lambda result: self.delivered.update([(result.query, *result.documents)]))

    def round(self, round: int) -> None:
        """Changes files and publishes documents."""
        write_sources(self.folder, round)
        numbers = range(6 * round, 6 * round + 6)
        times = [float(n) for n in numbers]
        with pytest.MonkeyPatch.context() as patch:
            if round == 2:
                patch.setattr(appending, "LARGEST_SEGMENT", 0)  # these segments have files of their own
            self.weir.publish("R", [{"k": n % 5, "x": n % 11} for n in numbers], times)
            self._publish_blogs(numbers, times)
        self.weir.publish("S", [{"k": n % 3, "y": n} for n in numbers], times)
        kinds = ["ab"[n % 3 == 0] for n in numbers]
        self.weir.publish("A", [f"<{k}><t>{n}</t><k>{n % 4}</k></{k}>" for k, n in zip(kinds, numbers, strict=True)])
        items = [f"<item><title>weir number {n % 5}</title></item>" for n in numbers]
        self.weir.publish("P", items[:3], times[:3])
        self.weir.publish("N", items[3:], times[3:])

    def _publish_blogs(self, numbers: range, times: list[float]) -> None:
        texts = [f"<blog><title>{n}</title><author>{n % 4}</author></blog>" for n in numbers]
        self.weir.publish("D", [*texts, "<broken>"], [*times, times[-1]])

    def run(self) -> None:
        self.weir.run(until_idle=True)

    def steps(self) -> None:
        """As `run`, but without waiting for what cannot be delivered."""
        while self.weir.step():
            pass

    def results(self) -> Found:
        return Counter((r.query, *r.documents, str(r.output)) for r in self.weir.results())

    def status(self) -> tuple[Any, ...]:
        status = self.weir.status()
        names = [self.weir.status(name).results for name in ("big", "pairs", "blogs")]
        return status.documents, status.set_aside, *(s.arrived for s in status.streams.values()), *names


def write_sources(folder: Path, round: int) -> None:
    prices = {"DELL": 100 - 10 * round, "MU": 100 - round, "IBM": 50 - 5 * (round % 2)}
    rows = "".join(f"<Quote><Symbol>{s}</Symbol><Price>{p}</Price></Quote>" for s, p in prices.items())
    (folder / "quotes.xml").write_text(f"<Quotes>{rows}</Quotes>")
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{round}.csv").write_text("n\n" + "1\n2\n3\n" * (round % 2))


@contextmanager
def opened(folder: Path, days: int = 9) -> Iterator[Desk]:
    desk = Desk(folder, days)
    try:
        yield desk
    finally:
        desk.weir.close()


@dataclass
class Place:
    """The location of the home, and the servers that it delivers to. Copies are made in the same folder, because a home
    names the files around it.
    """

    root: Path
    hooks: Hooks
    mailbox: Mailbox

    @property
    def folder(self) -> Path:
        return self.root / "work"

    @property
    def older(self) -> Path:
        """The home as of the previous round."""
        return self.root / "older"

    @property
    def killed(self) -> Path:
        """The home after a kill: SQLite has its newest changes in a separate file."""
        return self.root / "killed"

    def fresh(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(self.root)
        monkeypatch.setattr(changing, "UNSAVED_CHANGES", 1)
        shutil.rmtree(self.folder)
        shutil.copytree(self.killed, self.folder)
        monkeypatch.chdir(self.folder)
        for thread in threading.enumerate():
            if thread.name == "fishweir_sending":  # on a busy machine, a closed weir may still be sending
                thread.join(600)
        self.hooks.posted.clear()
        self.mailbox.mails.clear()
        forget()

    def sent(self, desk: Desk) -> dict[str, Found]:
        """The delivered results by output."""
        lines = Counter[str]()
        for path in (self.folder / "small.jsonl", self.folder / "late.jsonl"):
            lines.update(path.read_text().splitlines() if path.exists() else ())
        posted = [result for one in self.hooks.taken for result in one.results]
        return {
            "delivered": desk.delivered,
            "appended": lines,
            "posted": Counter(str(result["documents"]) for result in posted),
            "mailed": Counter(line for mail in self.mailbox.mails for line in _lines(mail)),
        }


def _lines(mail: EmailMessage) -> list[str]:
    """One line per result; the number of mails depends on which results waited together."""
    body = mail.get_body(("plain",))
    assert body is not None
    return [line for line in body.get_content().splitlines() if line]


def build(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds a home with evaluated documents and waiting ones, including mails and posts."""
    place.folder.mkdir()
    monkeypatch.chdir(place.folder)
    monkeypatch.setattr(changing, "UNSAVED_CHANGES", 1)
    place.hooks.answer, place.mailbox.refuse_recipient = lambda _: 503, "451 later"
    for round in (0, 1):
        write_sources(place.folder, round)
        with opened(place.folder, round) as desk:
            desk.weir.execute(SCRIPT.replace("{url}", place.hooks.url))
            desk.round(round)
            desk.steps()
        if not round:
            shutil.copytree(place.folder, place.older)
    with opened(place.folder, 2) as desk:
        desk.weir.execute("create query late as select x from R where x = 4 do append 'late.jsonl'")
        desk.round(2)
        shutil.copytree(place.folder, place.killed)
    place.hooks.answer, place.mailbox.refuse_recipient = lambda _: 204, None


class _Capabilities(ctypes.Structure):
    """The structure of capset(2), version 3: the effective, permitted and inheritable capabilities, in two halves."""

    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int), ("data", ctypes.c_uint32 * 6)]


@contextmanager
def without_privileges() -> Iterator[None]:
    """Makes file permissions effective for this thread, even if the tests run as root."""
    libc, held = ctypes.CDLL(None, use_errno=True), _Capabilities(0x20080522, 0)
    data = ctypes.byref(held, _Capabilities.data.offset)
    assert libc.capget(ctypes.byref(held), data) == 0
    effective = held.data[0]
    held.data[0] = effective & ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(ctypes.byref(held), data) == 0
    try:
        yield
    finally:
        held.data[0] = effective
        assert libc.capset(ctypes.byref(held), data) == 0


def forget() -> None:
    """Clears what a process caches of a home by its paths: each case has another home in the same place."""
    forget_plans()
    forget_sets()
    forget_states()
    for kept in (home._log, sealed._verify, commits._kept_tables):
        kept.cache_clear()
