"""The experiment on delivery, at a small size: everything arrives, each result once (the experiment checks that)."""

from __future__ import annotations

from fishweir.papers.delivery.run import many_timers, to_files, to_http, to_subscribers


def test_everything_arrives() -> None:
    assert [one.n for one in (*to_files(300), *to_http(200))][:2] == [300, 200]
    (fired, subscribed) = to_subscribers(40)
    assert (subscribed.n, fired.n) == (40, sum(20 // every * every for every in range(1, 21)))


def test_timers_that_are_not_due() -> None:
    assert [one.n for one in many_timers(500)] == [0, 500]
