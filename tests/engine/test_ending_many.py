"""Subscriptions that a script ends together: the same ones end as by single statements, and the first error counts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.engine.weir import Weir
from fishweir.errors import QueryError

SETUP = """
    create stream news; create feed F from news as $n where $n[title contains 'x'];
    create feed G from news as $n where $n[title contains 'y']
"""
USERS = ("o'neill", "jürgen", "李", "a_b", "a%b", "A", "a", *(f"u{i}" for i in range(9)))
ENDS = "unsubscribe from F output mail "


def opened(place: Path) -> Weir:
    weir = testing.open(place, clock=testing.Clock(1_000_000.0))
    weir.execute(SETUP)
    return weir


def output(user: str) -> str:
    return "'" + f"{user}@example.org".replace("'", "''") + "'"


def left(weir: Weir) -> tuple[list[tuple[object, ...]], list[object]]:
    """What is still subscribed to, and the timers."""
    with weir.catalog.database.connect() as connection:
        timers = connection.scalars("select key from timers join channels on channels.id = channel order by key")
    return sorted((one.feed, one.text, one.paused) for one in weir.catalog.subscribers()), timers


@pytest.mark.parametrize("seed", range(4))
def test_a_script_ends_what_single_statements_end(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    begins, ends = list[str](), list[str]()
    for feed in ("F", "G", "news"):
        for user in USERS:
            often = draw.sample(("", " every 1 hour", " every 2 hours"), draw.randint(1, 3))
            begins += [f"subscribe to {feed} output mail {output(user)}{one}" for one in often]
            ends.append(f"unsubscribe from {feed} output mail {output(user)}")
    draw.shuffle(ends)
    del ends[30:]
    ends[20:20] = [ends[3].replace("unsubscribe from", "subscribe to"), ends[3]]
    ends += ["subscribe to F output append 'f'", "unsubscribe from F"]
    with opened(tmp_path / "script") as script, opened(tmp_path / "singles") as singles:
        for weir in (script, singles):
            weir.execute(";".join(begins))
            paused = [one.id for one in weir.catalog.subscribers()][::5]
            with weir.catalog.change() as change:
                for id in paused:
                    change.subscribers.pause(id)
        script.execute(";\n".join(ends))
        for text in ends:
            singles.execute(text)
        assert left(script) == left(singles)
        assert left(script)[0]


@pytest.mark.parametrize(
    ("texts", "message", "line"),
    [
        ((f"{ENDS}'nobody'", f"{ENDS}'x@y.z'"), "'nobody' is not a mail address", 3),
        ((f"{ENDS}'x@y.z'", f"{ENDS}'nobody'"), "there is no such subscription to 'F'", 3),
        ((f"{ENDS}'u1@example.org'", f"{ENDS}'u1@example.org'"), "there is no such subscription to 'F'", 4),
        (("unsubscribe from H output mail 'u1@example.org'",), "there is no such subscription to 'H'", 3),
        (("unsubscribe from F", f"{ENDS}'u1@example.org'"), "there is no such subscription to 'F'", 4),
        ((f"{ENDS}'u1@example.org'", "unsubscribe from G"), "there is no such subscription to 'G'", 4),
        ((f"{ENDS}'x'", "create query q as select * from nothing"), "'x' is not a mail address", 3),
    ],
)
def test_the_first_error_is_reported_and_nothing_ends(
    texts: tuple[str, ...], message: str, line: int, tmp_path: Path
) -> None:
    with opened(tmp_path) as weir:
        weir.execute(";".join(f"subscribe to F output mail {output(user)}" for user in USERS))
        before = left(weir)
        with pytest.raises(QueryError, match=message) as error:
            weir.execute(";\n".join([f"{ENDS}{output('u0')}", f"{ENDS}{output('李')}", *texts, f"{ENDS}'y@y.z'"]))
        assert error.value.line == line
        assert left(weir) == before
        weir.catalog.verify()


def test_a_shared_output_ends_for_one_feed_only(tmp_path: Path) -> None:
    with opened(tmp_path) as weir:
        weir.execute("subscribe to F output append 'f'; subscribe to G output append 'f'")
        weir.execute("create query q as select * from news do append 'f'")
        weir.execute("unsubscribe from F output append 'f'")
        assert [(one.query, one.by_query) for one in weir.catalog.subscribers()] == [("G", False), ("q", True)]
