"""Late, early and wrong timestamps: what is retained for them, what is missed, and how it is reported."""

from __future__ import annotations

import logging
import random

import pytest

from fishweir import testing
from fishweir.errors import QueryError
from fishweir.testing import Clock

HOUR, DAY, START = 3600.0, 86400.0, 1.7e9
JOIN = "A//i->x[k->a] JOIN{a = b, 1 hour} B//i->y[k->b] publish j;"
STREAMS = "create stream A timestamp t; create stream B timestamp t;"


def item(key, time: float) -> str:
    return f"<i><k>{key}</k><t>{time}</t></i>"


def put(weir, stream: str, *some) -> None:
    weir.publish(stream, [item(*one) for one in some])
    while weir.step():
        pass


def pairs(weir, name: str = "j") -> list[tuple[str, ...]]:
    return sorted(tuple(result.documents) for result in weir.results(name))


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def home(tmp_path, clock):
    with testing.open(tmp_path / "home", clock) as weir:
        yield weir


def test_the_smallest_case(weir):
    weir.execute(STREAMS + JOIN)
    put(weir, "A", (1, START))
    put(weir, "B", ("z", START + 3 * HOUR))
    put(weir, "B", (1, START + 60))
    assert pairs(weir) == [("A-1", "B-2")]


@pytest.mark.parametrize("late", ["", " late by 1 hour"])
def test_an_item_from_the_future_does_not_block_others(tmp_path, clock, late):
    """Not even after a restart. It is counted, and joins items that are as far ahead."""
    with testing.open(tmp_path / "home", clock) as weir:
        weir.execute(STREAMS.replace("t;", f"t{late};") + JOIN)
        put(weir, "A", (2, START + 70 * 365 * DAY))
    for hour in range(50):
        clock.now = START + hour * HOUR
        with testing.open(tmp_path / "home", clock) as weir:
            put(weir, "A", (hour, clock.now - 1))
            put(weir, "B", (hour, clock.now))
    with testing.open(tmp_path / "home", clock) as weir:
        assert len(pairs(weir)) == 50
        assert weir.status().streams["A"].times.ahead == 1
        assert "1 item from the future" in str(weir.status())
        put(weir, "B", (2, START + 70 * 365 * DAY + 5))
        assert len(pairs(weir)) == 51


def test_results_do_not_depend_on_other_queries(tmp_path):
    """Another query with a longer window changes nothing: each is complete within the allowance."""
    found = []
    for beside in ("", "A//i->x[k->a] JOIN{a = b, 9 days} B//i->y[k->b] publish long;"):
        with testing.open(tmp_path / f"home{len(beside)}") as weir:
            weir.execute(STREAMS.replace("t;", "t late by 3 hours;") + JOIN + beside)
            draw = random.Random(4)
            for i in range(60):
                put(weir, draw.choice("AB"), (draw.randrange(2), START + i * 600 - draw.random() * 3 * HOUR))
            found.append(pairs(weir))
            assert weir.status("j").missed == {}
    assert found[0] == found[1]
    assert found[0]


def test_items_later_than_allowed_are_counted(home, clock, caplog):
    """It is selected, joins what is still retained, and is reported everywhere, in the log once."""
    home.execute(STREAMS.replace("t;", "t late by 10 minutes;") + JOIN)
    home.execute("create query all as B//i->y[k->b]; create query none as A//i->x[k->b]")
    for hour in range(6):
        clock.now = START + hour * HOUR
        put(home, "A", (hour, START + hour * HOUR))
        put(home, "B", (100 + hour, START + hour * HOUR))
    with caplog.at_level(logging.WARNING, "fishweir.time"):
        put(home, "B", (0, START), (5, START + 4.2 * HOUR))
        put(home, "B", (1, START + HOUR))
    assert {"A-6", "B-8"} in map(set, pairs(home)), "what is still there"
    assert len([r for r in caplog.records if "stream B: items arrive later than allowed" in r.message]) == 1
    assert home.status("j").missed == {"B": 3}
    assert home.status("all").missed == home.status("none").missed == {}
    assert home.status("all").results == 9
    assert home.status().streams["B"].times.missed == 3
    assert home.status().streams["A"].times.missed == 0
    assert "3 of B arrived later than allowed: results with them may be missing" in str(home.status("j"))
    told = home.explain("j")
    assert "late      B: allowed lateness 10 minutes (declared), 3 items arrived later" in told
    assert "missed    3 of B arrived later than allowed" in told
    home.execute("A//i->x[k->a] JOIN{a = b, 1 hour} B//i->y[k->b] publish after;")
    assert home.status("after").missed == {}, "nothing since its registration"


def test_lateness_is_learned(home, clock):
    """Items that are up to two hours late find their partners, although the window is five minutes; state does not
    grow."""
    home.execute(STREAMS + "A//i->x[k->a] JOIN{a = b, 5 minutes} B//i->y[k->b] publish j;")
    draw, sizes, size = random.Random(1), [], 300
    some = sorted((START + i * 120 + draw.random() ** 3 * 2 * HOUR, stream, i) for i in range(size) for stream in "AB")
    for number, (arrival, stream, i) in enumerate(some):
        clock.now = arrival
        home.publish(stream, [item(i, START + i * 120)])
        if number % 7 == 0:
            home.step()
            sizes.append(home.status().retained)
    home.step()
    assert len(pairs(home)) == size
    assert home.status("j").missed == {}
    times = home.status().streams["A"].times
    assert HOUR < times.allowed < 6 * HOUR
    assert not times.declared
    assert max(sizes[len(sizes) // 2 :]) < 1.5 * max(sizes[: len(sizes) // 2])


@pytest.mark.parametrize("first", ["A", "AB"])
def test_old_data_is_replayed(home, clock, first):
    """Last year's items in order, after this year's: into one stream before the other, or alternating."""
    home.execute(STREAMS + JOIN)
    for i in range(40):
        clock.now = START + i * 60
        put(home, "A", (f"n{i}", clock.now))
        put(home, "B", (f"n{i}", clock.now))
    clock.now = START + HOUR
    old = [(f"o{i}", START - 365 * DAY + i * 600) for i in range(60)]
    if first == "A":
        for one in old:
            put(home, "A", one)
        for one in old:
            put(home, "B", one)
    else:
        for one in old:
            put(home, "A", one)
            put(home, "B", one)
    assert len(pairs(home)) == 100


def test_an_idle_stream_does_not_block_others(tmp_path, clock):
    """It blocks them for a while only, unless its source is known to fail."""
    with testing.open(tmp_path / "home", clock, idle_after=DAY) as weir:
        weir.execute(STREAMS.replace("t;", "t late by 1 minute;") + JOIN)
        put(weir, "B", ("b", START))
        sizes = []
        for hour in range(1, 72):
            clock.now = START + hour * HOUR
            put(weir, "A", (hour, clock.now))
            sizes.append(weir.status().retained)
        assert sizes[20] >= 20
        assert sizes[-1] <= 10
        put(weir, "B", (71, clock.now))
        assert len(pairs(weir)) == 1


def test_a_failing_stream_blocks_others(tmp_path, clock):
    with testing.open(tmp_path / "home", clock, idle_after=DAY) as weir:
        weir.execute(STREAMS.replace("t;", "t late by 1 minute;") + JOIN)
        source = weir.feed("B", [item("b", START), testing.PAUSE])
        put(weir, "A", ("a", START))
        source.trouble = "it fails"
        source.poll = lambda now: iter(())
        for hour in range(1, 72):
            clock.now = START + hour * HOUR
            put(weir, "A", (hour, clock.now))
        assert weir.status().retained >= 71


def test_state_stays_within_its_limit(tmp_path, clock, caplog):
    """Then less lateness is allowed and missed items are counted. Declared lateness is never reduced."""
    counts = {}
    for late in ("", " late by 10 days"):
        with testing.open(tmp_path / f"home{len(late)}", clock, state_limit=60_000) as weir:
            weir.execute(STREAMS.replace("t;", f"t{late};") + JOIN)
            for hour in range(200):
                clock.now = START + hour * HOUR
                back = 150 * HOUR if hour % 5 == 4 else 0
                weir.publish("A", [item(f"a{hour}-{i}", clock.now - back) for i in range(5)])
                weir.publish("B", [item(f"b{hour}-{i}", clock.now - back) for i in range(5)])
                weir.step()
            counts[late] = weir.status().state_bytes, weir.status("j").missed
    assert counts[""][0] < 80_000
    assert counts[""][1]
    assert counts[" late by 10 days"][0] > 80_000
    assert counts[" late by 10 days"][1] == {}
    assert "the join state exceeds the limit of 0 MiB" in caplog.text


def test_items_from_the_future_do_not_fill_the_state(tmp_path, clock):
    """What they stand beside is dropped in time, so the limit does not reduce the lateness allowance."""
    draw, sizes = random.Random(3), []
    with testing.open(tmp_path / "home", clock, state_limit=200_000, idle_after=1e12) as weir:
        weir.execute("""
            create stream A (k int, t double) timestamp t; create stream B (k int, t double) timestamp t;
            create query q as select A.k from A [range 20 seconds], B [range 20 seconds] where A.k = B.k;
        """)
        for step in range(0, 6_000, 100):
            for stream in "AB":
                times = [START + step + i - (draw.random() < 0.05) * draw.random() * 300 for i in range(100)]
                times[50] += 1e9
                weir.publish(stream, [{"k": draw.randint(0, 60), "t": time} for time in times])
            clock.now = START + step + 100
            weir.step()
            sizes.append(weir.status().state_bytes)
            assert weir.table.newest().level == 0
        assert weir.status("q").missed == {}
    assert max(sizes) < 200_000


def test_old_versions_of_rows_are_dropped(tmp_path, clock):
    """A file that keeps changing: only versions within reach of the window are retained."""
    file = tmp_path / "rows.xml"
    file.write_text("<rows/>")
    with testing.open(tmp_path / "home", clock) as weir:
        weir.execute(f"create stream F from '{file}' rows //row key @id every 0; create stream B timestamp t;")
        weir.execute("F//row->x[k->a] JOIN{a = b, 10 minutes} B//i->y[k->b] publish j;")
        sizes = []
        for minute in range(0, 300, 5):
            clock.now = START + minute * 60
            file.write_text("<rows>" + "".join(f"<row id='{i}'><k>{minute}</k></row>" for i in range(20)) + "</rows>")
            weir.step()
            put(weir, "B", (minute, clock.now), (minute - 5, clock.now))
            sizes.append(weir.status().state_bytes)
        assert len(pairs(weir)) == 60 * 20, "each row joins while it is in force"
        assert max(sizes[40:]) < 1.5 * max(sizes[10:30])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("create stream S timestamp t late by", "expected"),
        ("create stream S timestamp t late 2 days", "expected"),
        ("create stream S late by 2 days", "expected"),
        ("create stream S timestamp t late by soon", "'soon' is not a unit of time"),
    ],
)
def test_bad_clauses_are_refused(weir, text, reason):
    with pytest.raises(QueryError, match=reason):
        weir.execute(text)


def test_late_by_is_part_of_the_definition(weir):
    weir.execute("create stream S timestamp t late by 90 minutes conforms to 'a.dtd';")
    weir.execute("create stream R (x int, t double) timestamp t LATE BY 2 days;")
    assert {name: stream.late for name, (_, stream) in weir.catalog.streams().items()} == {"S": 5400.0, "R": 2 * DAY}
