"""Subscriptions that share a parse agree with separate parses."""

from __future__ import annotations

import pytest

from fishweir.algebra.feeds import Subscribe
from fishweir.algebra.nodes import Statement
from fishweir.languages.roses.language import parse_statement
from fishweir.languages.statement_text import StatementText
from fishweir.languages.subscriptions import SubscriptionCache

NOW = 1000.0
ALIKE = [
    ("subscribe to F output jsonl 'a' every 10 minutes", "subscribe to F output jsonl 'b''c' every 2.5 minutes"),
    ("subscribe to F output jsonl 'a'", "subscribe to F output jsonl 'to'"),
    ("subscribe to F output http 'http://a/' at most 1 per hour", "subscribe to F output http 'b' at most 7 per hour"),
    ("subscribe to F output mail to 'a@b' every 1 day", "subscribe to F output mail to 'c@d' every 3 day"),
    ("subscribe to F output mail 'a' quiet '22:00-07:00'", "subscribe to F output mail 'a' quiet '23:00-06:00'"),
    ("subscribe to F output jsonl 'a' start 5000 every 60", "subscribe to F output jsonl 'b' start 5000 every 90"),
    ("Subscribe To F output f('a', 'b') every 1 hour", "Subscribe To F output f('c', 'd') every 2 hour"),
    ("subscribe to F apply 'x.xsl' output jsonl 'a'", "subscribe to F apply 'x.xsl' output jsonl 'b'"),
]


def parsed(text: str, now: float = NOW) -> Statement:
    return parse_statement(StatementText(text, 0, len(text)), 1, now)


def cache_of(*texts: str) -> SubscriptionCache:
    cache = SubscriptionCache()
    for text in texts:
        statement = parsed(text)
        assert isinstance(statement, Subscribe)
        cache.keep(statement, NOW, parsed)
    return cache


@pytest.mark.parametrize(("first", "later"), ALIKE)
def test_similar_statements_share_a_parse_that_equals_their_own(first: str, later: str) -> None:
    cache = cache_of(first)
    assert cache.find(first, 1) == parsed(first)
    assert cache.find(later, 1) == parsed(later)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("subscribe to 'F' output jsonl 'a'", "subscribe to 'G' output jsonl 'a'"),
        ("subscribe to F apply 'x.xsl' output jsonl 'a'", "subscribe to F apply 'y.xsl' output jsonl 'a'"),
        ("subscribe to F output jsonl 'a' start 5000", "subscribe to F output jsonl 'a' start 6000"),
        ("subscribe to F output jsonl 'a' every '10 minutes'", "subscribe to F output jsonl 'a' every '5 minutes'"),
        ("subscribe to F output jsonl 'a' every 5 minutes", "subscribe to F output jsonl 'a' every 5 hours"),
        ("subscribe to F output jsonl 'a' every 5 minutes", "subscribe to F output jsonl 'a' every -5 minutes"),
        ("subscribe to F output jsonl 'a' every 5 minutes", "subscribe to F output jsonl 'a' every 1e308 minutes"),
    ],
)
def test_statements_that_may_differ_in_meaning_are_parsed(first: str, later: str) -> None:
    assert cache_of(first).find(later, 1) is None


def test_relative_times_are_parsed_each_time() -> None:
    text = "subscribe to F output jsonl 'a' every 1 hour expire in 3 days"
    assert cache_of(text).find(text, 1) is None


def test_other_statements_are_not_treated_as_subscriptions() -> None:
    assert cache_of("subscribe to F output jsonl 'a'").find("subscribe-to F output jsonl 'a'", 1) is None
