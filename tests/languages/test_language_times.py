"""Times and intervals."""

from __future__ import annotations

import pytest

from fishweir.languages.times import BadTime, Moment, parse_interval, parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        ("0", 0),
        ("250 ms", 0.25),
        ("1.5 min", 90),
        ("2h", 7200),
        ("minute", 60),
        ("hourly", 3600),
        ("Weekly", 604800),
        ("3 Months", 7776000),
        ("1 year", 31536000),
        (" 10 seconds ", 10),
    ],
)
def test_interval(text: str, seconds: float) -> None:
    assert parse_interval(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "5 apples", "five minutes", "1 2", "9" * 400])
def test_texts_that_are_not_intervals(text: str) -> None:
    with pytest.raises(BadTime):
        parse_interval(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", Moment(0, True)),
        ("In 2 days", Moment(172800, True)),
        ("2 days", Moment(172800, True)),
        ("1000", Moment(1000)),
        ("1970-01-02", Moment(86400)),
        ("1970-01-01T01:00+01:00", Moment(0)),
        ("1970-01-01 00:01", Moment(60)),
        ("Thu, 01 Jan 1970 00:00:05 GMT", Moment(5)),
    ],
)
def test_time(text: str, moment: Moment) -> None:
    assert parse_time(text) == moment
    assert moment.at(10) == moment.seconds + (10 if moment.from_now else 0)


@pytest.mark.parametrize("text", ["", "yesterday", "hour", "1970-13-01", "in -3 days"])
def test_texts_that_are_not_times(text: str) -> None:
    with pytest.raises(BadTime):
        parse_time(text)
