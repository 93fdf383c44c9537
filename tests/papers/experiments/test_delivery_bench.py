"""The experiment on delivery, at a small size: everything arrives, each result once (the experiment checks that)."""

from __future__ import annotations

from fishweir.papers.delivery.measures import (
    DELIVERIES,
    FEED,
    SUBSCRIBED,
    many_timers,
    small_posts,
    to_callback,
    to_files,
    to_http,
    to_subscribers,
)


def test_everything_arrives() -> None:
    parts = (to_files(300), to_callback(200), to_http(200), small_posts(30))
    assert [one.n for part in parts for one in part] == [300, 200, 200, 30]
    found = {one.case: one.n for one in to_subscribers(40)}
    every = range(1, 21)
    assert found == {SUBSCRIBED: 40, FEED: sum(20 // e * e for e in every), DELIVERIES: sum(20 // e for e in every)}


def test_timers_that_are_not_due() -> None:
    assert [one.n for one in many_timers(500)] == [0, 500]
