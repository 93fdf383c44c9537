"""List, search, replace, pause and resume; other actions; streams that go; times that an administrator gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fishweir import testing
from fishweir.cli import app
from fishweir.errors import QueryError
from fishweir.testing import Clock, Weir


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def weir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Weir]:
    monkeypatch.chdir(tmp_path)
    with testing.open(tmp_path / "home", clock=clock) as opened:
        opened.execute("""
            create stream R (x int); create stream Idle;
            create query big as select x from R where x > 5 do append 'big';
            create query small as select x from R where x < 3 start in 1 hour;
            create feed F from R;
            subscribe to big output jsonl 'box';
            subscribe to F output jsonl 'feed' every 1 hour;
        """)
        yield opened


def publish(weir: Weir, *values: int) -> None:
    weir.publish("R", [{"x": value} for value in values])
    weir.step()


def values(weir: Weir, name: str) -> list[int]:
    return [result.output["x"] for result in weir.results(name)]  # type: ignore[index]


def lines(path: str) -> int:
    return len(Path(path).read_text().splitlines()) if Path(path).exists() else 0


def test_listing_and_searching(weir: Weir) -> None:
    assert [(one.name, one.state) for one in weir.queries()] == [
        ("big", "running"),
        ("small", "waiting"),
        ("F", "running"),
    ]
    assert [one.name for one in weir.queries("b*")] == ["big"]
    assert [one.name for one in weir.queries("X < 3")] == ["small"]
    assert [(one.feed, one.output, one.every) for one in weir.subscriptions()] == [
        ("big", "append", 0.0),
        ("big", "jsonl", 0.0),
        ("F", "jsonl", 3600.0),
    ]
    assert [one.feed for one in weir.subscriptions("every 1 hour")] == ["F"]


def test_a_paused_query_has_no_results_until_it_resumes(weir: Weir) -> None:
    publish(weir, 6)
    weir.pause("big")
    assert str(weir.status("big")).startswith("query big: paused, 1 results")
    publish(weir, 7)
    weir.execute("create query big as select x from R where x > 5 do append 'big'")
    with pytest.raises(QueryError, match="already exists"):
        weir.execute("create query big as select x from R")
    publish(weir, 8)
    assert values(weir, "big") == [6], "what is registered already is skipped, paused or not"
    weir.resume("big")
    publish(weir, 9)
    assert values(weir, "big") == [6, 9]
    assert (lines("big"), lines("box")) == (2, 2)
    with pytest.raises(QueryError, match="the query big is not paused"):
        weir.resume("big")
    weir.pause("big")
    for attempt, reason in [
        (lambda: weir.pause("big"), "the query big is already paused"),
        (lambda: weir.replace(" "), "the statement is empty"),
        (lambda: weir.act("big", "do append 'x'"), "the query big is paused: resume it first"),
        (lambda: weir.replace("create query big as select x from R"), "the query big is paused: resume it first"),
    ]:
        with pytest.raises(QueryError, match=reason):
            attempt()  # type: ignore[no-untyped-call]
    weir.drop("big")
    assert [one.name for one in weir.queries()] == ["small", "F"]
    weir.execute("create query big as select x from R")


def test_a_query_that_has_not_started_may_be_paused(weir: Weir, clock: Clock) -> None:
    weir.pause("small")
    weir.resume("small")
    publish(weir, 1)
    weir.pause("small")
    clock.advance(3600)
    publish(weir, 2)
    assert values(weir, "small") == []
    weir.resume("small")
    publish(weir, 0)
    assert values(weir, "small") == [0]


@pytest.mark.parametrize("call", ["pause", "resume", "drop", "act", "status", "explain"])
def test_unknown_names(weir: Weir, call: str) -> None:
    more = ["do append 'x'"] if call == "act" else []
    with pytest.raises(QueryError, match="there is no query none"):
        getattr(weir, call)("none", *more)
    if call in ("pause", "resume", "drop"):
        with pytest.raises(QueryError, match="there is no subscription 99"):
            getattr(weir, call)(99)


def test_replacing_and_dropping_a_subscription(weir: Weir, clock: Clock) -> None:
    publish(weir, 6)
    (timed,) = weir.subscriptions("feed")
    with pytest.raises(QueryError, match="a single 'subscribe to"):
        weir.replace("create query big as select x from R", timed.id)
    with pytest.raises(QueryError, match="there is no feed 'none'"):
        weir.replace("subscribe to none output jsonl 'other'", timed.id)
    assert weir.replace("subscribe to F output jsonl 'other' every 2 hours", timed.id) == "F"
    weir.step()
    assert lines("feed") == 1, "what waited is delivered"
    publish(weir, 7)
    clock.advance(7200)
    weir.step()
    assert (lines("feed"), lines("other")) == (1, 1)
    (other,) = weir.subscriptions("other")
    weir.drop(other.id)
    assert weir.subscriptions("other") == []


def test_replacing_actions_and_their_times(weir: Weir, clock: Clock) -> None:
    weir.act("big", "do append 'one' every 1 hour expire in 2 hours")
    with pytest.raises(QueryError, match="the start cannot be changed"):
        weir.act("big", "do append 'one' start in 1 hour")
    publish(weir, 6)
    clock.advance(7300)
    publish(weir, 7)
    assert (values(weir, "big"), lines("one")) == ([6], 1)


def test_an_administrators_times_are_not_those_of_queries_that_others_share(tmp_path: Path, clock: Clock) -> None:
    chain = "S//a->x FOLLOWED BY{x = y, 5} S//b->y FOLLOWED BY{x = z, 5} S//c->z"
    with testing.open(tmp_path / "home", clock=clock, defaults="expire in 1 day") as weir:
        weir.execute(f"create stream S; create query one as {chain}")
        clock.advance(80_000)
        weir.execute(f"create query two as {chain}")
        clock.advance(80_000)
        for tag in "abc":
            weir.publish("S", [f"<{tag}>1</{tag}>"])
            clock.advance(1)
            weir.run(until_idle=True)
        assert [one.name for one in weir.queries()] == ["two"]
        assert len(list(weir.results("two"))) == 1


def test_a_paused_subscription(weir: Weir, clock: Clock) -> None:
    (box,) = (one for one in weir.subscriptions("box"))
    weir.pause(box.id)
    publish(weir, 6)
    assert (lines("big"), lines("box")) == (1, 0)
    (paused,) = weir.subscriptions("box")
    assert paused.paused
    weir.resume(paused.id)
    publish(weir, 7)
    assert (lines("big"), lines("box")) == (2, 1)
    (timed,) = weir.subscriptions("feed")
    weir.pause(timed.id)
    weir.resume(timed.id)
    publish(weir, 1)
    clock.advance(3600)
    weir.step()
    assert lines("feed") == 3, "what came before the pause is delivered too"
    with pytest.raises(QueryError, match="no subscription 99"):
        weir.pause(99)


def test_replacing_keeps_results_and_subscriptions(weir: Weir) -> None:
    publish(weir, 6)
    weir.replace("create query big as select x from R where x > 100 do append 'huge'")
    publish(weir, 7, 101)
    assert values(weir, "big") == [6, 101]
    assert (lines("big"), lines("box"), lines("huge")) == (1, 2, 1)
    with pytest.raises(QueryError, match="there is no query none"):
        weir.replace("create query none as select x from R")
    assert weir.replace("create feed F from R where [x > 3]") == "F"


def test_replacing_actions(weir: Weir, clock: Clock) -> None:
    weir.act("big", "do append 'one' do append 'two' every 1 hour")
    publish(weir, 6)
    assert (lines("big"), lines("one"), lines("box")) == (0, 0, 1)
    clock.advance(3600)
    weir.step()
    assert (lines("one"), lines("two")) == (1, 1)
    weir.act("big", "")
    publish(weir, 7)
    clock.advance(3600)
    weir.step()
    assert (lines("one"), lines("box")) == (1, 2)
    with pytest.raises(QueryError, match="not a mail address"):
        weir.act("big", "do mail nobody")


def test_dropping_a_stream(weir: Weir) -> None:
    weir.drop_stream("Idle")
    assert "Idle" not in weir.status().streams  # type: ignore[union-attr]
    with pytest.raises(QueryError, match="the stream R is read by"):
        weir.drop_stream("R")
    weir.execute("create stream Idle (y int)")


def test_an_administrators_times(tmp_path: Path, clock: Clock) -> None:
    with testing.open(tmp_path / "home", clock=clock, defaults="every 1 hour expire in 2 days") as weir:
        weir.execute(
            "create stream R (x int); create query q as select x from R; create query now as select x from R every 0"
        )
        found = {one.name: (one.every, one.expire) for one in weir.queries()}
        assert found == {"q": (3600.0, 1000 + 2 * 86400.0), "now": (0.0, 1000 + 2 * 86400.0)}
    with pytest.raises(QueryError, match="defaults"):
        testing.open(tmp_path / "other", defaults="every blue moon")


def test_on_the_command_line(weir: Weir, tmp_path: Path) -> None:
    publish(weir, 6)

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--home", str(tmp_path / "home")])
        assert done.exit_code == 0, done.output
        return str(done.output)

    assert [line.split("\t")[:2] for line in run("list", "big").splitlines()] == [["big", "running"]]
    run("pause", "big")
    assert "paused" in run("list", "big")
    run("resume", "big")
    run("act", "big", "do append 'x'")
    assert "append" in run("list", "-s", "big")
    assert run("replace", "create query big as select x from R where x > 9") == "big\n"
    (box,) = run("list", "-s", "box").splitlines()
    number = box.split("\t")[0]
    run("pause", number)
    assert "paused" in run("list", "-s", "box")
    run("resume", number)
    (box,) = run("list", "-s", "box").splitlines()
    run("replace", "subscribe to big output jsonl 'crate'", "-s", box.split("\t")[0])
    (crate,) = run("list", "-s", "crate").splitlines()
    run("drop", crate.split("\t")[0])
    wrong = CliRunner().invoke(app, ["pause", "none", "--home", str(tmp_path / "home")])
    assert wrong.exit_code == 1
    assert "there is no query none" in wrong.output
    run("drop", "big")
    run("drop", "--stream", "Idle")
    assert run("letters") == ""
    assert run("resend") == "0 resent\n"
    assert "no such subscription" in run("unsubscribe", "abc")
