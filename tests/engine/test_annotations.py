"""RoSeS' annotation join through the job: the paper's example, views over it, restarts, and the oracle."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lxml import etree

from fishweir import testing
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.join_oracle import Arrival, annotate
from fishweir.algebra.nodes import Source
from fishweir.errors import QueryError
from fishweir.pipeline.states import cached_states

DAY = 86400.0
STREAMS = "create stream {}; create stream {}; create stream {};"
PHOTOS = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:template match="/item"><item><xsl:copy-of select="title"/>
<xsl:for-each select="annotation/item"><photo><xsl:value-of select="link"/></photo></xsl:for-each></item>
</xsl:template></xsl:stylesheet>"""


def item(title: str, description: str = "-", more: str = "") -> str:
    return f"<item><title>{title}</title><description>{description}</description>{more}</item>"


def photo(title: str, link: str, category: str = "rock") -> str:
    return item(title, more=f"<link>{link}</link><category>{category}</category>")


def shown(weir, name):
    return [(r.documents[0], [b["document"] for b in r.bindings.values()]) for r in weir.results(name)]


def test_the_papers_example(weir):
    """Section 3.1's MusePhotoStream, section 3.2's MPhoto."""
    Path("IncludePhotos.xml").write_text(PHOTOS)
    for name in ("FriendsFacebookStream", "EventAnnounces", "FollowedTwitterStream", "MuseNews", "MusicPhotos"):
        weir.execute(f"create stream {name}")
    weir.execute("""
        create stream FriendsPhotos;
        create feed RockConcertStream
        from (FriendsFacebookStream | EventAnnounces as $ca | FollowedTwitterStream) as $r
        where $ca[title contains 'rock'] and $r[description contains 'concert'];
        create feed MusePhotoStream
        from (RockConcertStream as $r | MuseNews) as $main
        join last 3 months on (MusicPhotos as $m | FriendsPhotos)
            with $main[title similar window.title]
        where $r[description contains 'Muse'] and $m[category = 'rock'];
        register feed MusePhotoStream apply 'IncludePhotos.xml' as MuseWithPhotos;
        create feed Shown from MuseWithPhotos;
        create feed Live from MusePhotoStream where [title contains 'live'];
    """)
    live = "Muse live in Paris"
    weir.publish("MusicPhotos", [photo(live, "p1"), photo(live, "p2", "pop")], [0.0, 0.0])
    weir.publish("FriendsPhotos", [photo("Muse in Paris", "p3"), photo("Something else", "p4")], [80 * DAY, 80 * DAY])
    weir.run(until_idle=True)
    weir.publish(
        "EventAnnounces",
        [
            item("Muse live in Paris rock", "a concert of Muse"),
            item("Muse live in Paris", "a concert of Muse"),
            item("Muse live in Paris rock", "a concert of others"),
        ],
        [81 * DAY] * 3,
    )
    weir.publish("MuseNews", [item("muse in PARIS, live"), item("Muse elsewhere")], [95 * DAY, 95 * DAY])
    weir.run(until_idle=True)
    found = {("EventAnnounces-1", ("MusicPhotos-1", "FriendsPhotos-1")), ("MuseNews-1", ("FriendsPhotos-1",))}
    assert {(id, tuple(some)) for id, some in shown(weir, "MusePhotoStream")} == found
    assert {(id, tuple(some)) for id, some in shown(weir, "Live")} == found, "a view keeps items and annotations"
    first = next(r for r in weir.results("MusePhotoStream") if r.documents == ["EventAnnounces-1"])
    output = etree.fromstring(str(first.output))
    (note,) = output.iterchildren("annotation")
    assert note.get("join") == "$main"
    assert [one.findtext("link") for one in note] == ["p1", "p3"], "in time order"
    assert output.findtext("description") == "a concert of Muse"
    assert list(first.bindings) == ["window", "window.2"]
    assert first.bindings["window"] == {"document": "MusicPhotos-1", "node": 0, "value": "Muse live in Paris-p1rock"}
    made = sorted("".join(r.output.split()) for r in weir.results("Shown"))
    assert made[0].endswith("<photo>p1</photo><photo>p3</photo></item>"), "stylesheets see annotations"
    status = weir.status("MusePhotoStream")
    assert (status.results, "waits" in str(status)) == (2, False)
    text = weir.explain("Live")
    for words in (
        "reads     MuseNews: title contains",
        "annotated by join 1",
        'window  MusicPhotos: category = "rock"',
        "join 1    last 7.776e+06 s with title similar window.title",
        "title similar window.title, at least 0.5",
        "queries: 2",
        "sees      items of its windows that arrived after its registration",
    ):
        assert words in text, f"{words} in\n{text}"
    assert "signature" in weir.explain()


def test_joins_of_several_kinds(weir):
    weir.execute(STREAMS.format("News", "Photos", "Other"))
    weir.execute("""
        create feed Both from (News as $n | Other) as $main
            join last 3 months on (Photos as $p | Other) with $main[title similar(0.9) window.title]
            join last 2 items on Photos with $n[link = window.link and title != window.title]
            where $n[description contains 'Muse'];
        create feed Some from (News as $n | Other) join last day on Photos with $n[title = window.title];
        create query Referring as from News join last day on Photos with [description references window.link];
    """)
    weir.publish("Photos", [photo("a", "http://p.org/1"), photo("x", "http://p.org/1"), photo("y", "http://p.org/1")])
    weir.publish("Other", [item("b")])
    weir.run(until_idle=True)
    more = "<link>http://p.org/1</link>"
    weir.publish(
        "News",
        [
            item("b", "Muse", more),
            item("a", "Muse", more),
            item("a", "-", more),
            item("c", "see http://p.org/1/ now"),
        ],
    )
    weir.run(until_idle=True)
    assert shown(weir, "Both") == [
        ("News-1", ["Other-1", "Photos-2", "Photos-3"]),
        ("News-2", ["Photos-1", "Photos-2", "Photos-3"]),
    ]
    assert list(next(iter(weir.results("Both"))).bindings) == ["window", "join2.window", "join2.window.2"]
    assert shown(weir, "Some") == [("Other-1", []), ("News-2", ["Photos-1"]), ("News-3", ["Photos-1"])]
    assert shown(weir, "Referring") == [("News-4", ["Photos-1", "Photos-2", "Photos-3"])]
    for text, words in (
        ("create feed J from News join last day on Nowhere with [title = window.title]", "no feed 'Nowhere'"),
        ("create feed J from News join last day on Photos with [window.link extends title]", "attribute of the item"),
        ("create feed V from Both; create or replace feed Both from News join last day on V with [x=window.x]", "read"),
    ):
        with pytest.raises(QueryError, match=words):
            weir.execute(text)
    weir.execute("create or replace feed Some from News join last day on Photos with [title similar window.title]")
    weir.execute("drop feed Both; delete Referring")
    assert "dropped" in weir.explain("Both")
    weir.publish("News", [item("x")])
    weir.run(until_idle=True)
    assert shown(weir, "Some")[-1][0] != "News-5", "its window holds what arrived after it was replaced"
    weir.publish("Photos", [photo("x", "-")])
    weir.publish("News", [item("X")])
    weir.run(until_idle=True)
    assert shown(weir, "Some")[-1] == ("News-6", ["Photos-4"])
    files = {path.suffix for path in (Path("home") / "state").iterdir()}
    assert files == {".state"}


QUERIES = """
    create feed Q1 from (A | B as $b) as $x join last 30 seconds on (B | C as $c) with $x[title similar window.title]
        where $b[title contains 'w1'] and $c[has link];
    create feed Q2 from A join last 5 items on (B | C) with [link = window.link];
    create feed Q3 from (A as $a | C) join last 10 seconds on A with $a[title similar(0.3) window.title];
    create feed Q4 from (Q1 | Q2) as $y join last 3 items on C with $y[title contains window.title];
"""


def test_equal_to_the_oracle_over_restarts(tmp_path):
    """Four micro-batches, with the home closed after each and some items late."""
    pick, arrived = random.Random(7), []
    home = tmp_path / "home"
    with testing.open(home) as weir:
        weir.execute(STREAMS.format("A", "B", "C") + QUERIES)
        queries = {name: weir.catalog.query(name) for name in ("Q1", "Q2", "Q3", "Q4")}
    for batch in range(4):
        with testing.open(home) as weir:
            for stream, name in enumerate("ABC"):
                known, came = sum(one.stream == stream for one in arrived), 3 * batch + stream
                made = [_random(pick, batch) for _ in range(12)]
                weir.publish(name, [body for body, _ in made], [time for _, time in made])
                arrived += [
                    Arrival(Source(name), stream, n, came, Document(f"{name}-{n}", t, parse_document(b.encode())))
                    for n, (b, t) in enumerate(made, known + 1)
                ]
            weir.run(until_idle=True)
            assert weir.status().micro_batches == batch + 1, "what is published together is one micro-batch"
    with testing.open(home) as weir:
        for name, query in queries.items():
            wanted = sorted(
                (one.item.document.id, sorted(a.document.id for some in one.annotation.values() for a in some))
                for one in annotate(query.shape, query.constants, arrived)
            )
            assert sorted((id, sorted(some)) for id, some in shown(weir, name)) == wanted
            assert wanted, name
            assert weir.status(name).results == len(wanted)


def _random(pick: random.Random, batch: int) -> tuple[str, float]:
    title = " ".join(pick.choice(["w1", "w2", "w3", "w4"]) for _ in range(pick.randint(1, 3)))
    link = f"<link>l{pick.randint(1, 3)}</link>" if pick.random() < 0.7 else ""
    return f"<item><title>{title}</title>{link}</item>", float(batch * 4 + pick.randint(0, 5))


def test_join_conditions_with_or_not_and_constants(weir):
    """An item must match by one of the parts, and is annotated once with everything that matches by any part."""
    weir.execute(STREAMS.format("A", "B", "C"))
    weir.execute("""
        create feed Either from A as $x join last 3 hours on (B | C)
            with $x[title similar window.title or link = window.link];
        create feed Rock from A as $x join last 3 hours on B
            with $x[title contains 'rock' and window.title contains 'live' and not (link = window.link)];
        create feed Mixed from A as $x join last 2 items on B
            with $x[(title contains 'rock' or title contains 'pop') and link = window.link];
    """)
    weir.publish("B", [photo("Muse live", "p1"), photo("rock fest", "p2"), photo("live jazz", "p3")], [0.0, 1.0, 2.0])
    weir.publish("C", [photo("Muse", "p2")], [3.0])
    weir.step()
    links = [f"<link>{link}</link>" for link in ("p1", "p2", "p2")]
    titles = ["Muse live rock", "rock fest", "jazz"]
    weir.publish("A", [item(t, more=link) for t, link in zip(titles, links, strict=True)], [10.0, 11.0, 12.0])
    weir.step()
    assert shown(weir, "Either") == [("A-1", ["B-1"]), ("A-2", ["B-2", "C-1"]), ("A-3", ["B-2", "B-3", "C-1"])]
    assert shown(weir, "Rock") == [("A-1", ["B-3"]), ("A-2", ["B-1", "B-3"])]
    assert shown(weir, "Mixed") == [("A-2", ["B-2"])]
    assert " or " in weir.explain("Either")
    with pytest.raises(QueryError, match="can never hold"):
        weir.execute("create feed N from A as $x join last day on B with $x[t = window.t and not t = window.t]")


def test_windows_share_the_state_of_other_joins(weir):
    """One section of one state file: it keeps what a window of items needs, and drops what only the pair join
    needed."""
    weir.execute("create stream A; create stream B")
    weir.execute("B//item[title->x] JOIN{x = y, 5} A//item[title->y] publish Pairs")
    weir.execute("""create feed Noted from A as $a join last 2 items on B as $b
                    with $a[title = window.title] where $b[title contains 'live']""")
    for start in range(0, 200, 10):
        titles = ["Muse live" if at % 50 == 0 else f"t{at}" for at in range(start, start + 10)]
        weir.publish("B", [item(title) for title in titles], [float(at) for at in range(start, start + 10)])
        weir.publish("A", [item("nothing")], [float(start + 9)])
        weir.run(until_idle=True)
    newest = {file["name"] for file in weir.table.newest().states}
    files = [cached_states(weir.home.state / name) for name in newest]
    assert {kind for states in files for kind in states} == {"joins"}
    needed = {100.0, 150.0, *map(float, range(194, 200))}
    kept = {time for states in files for time in states["joins"].times.tolist()}
    assert needed <= kept
    assert len(kept) <= len(needed) + 20, "and what the last micro-batches have not merged yet"
    weir.publish("A", [item("Muse live"), item("t199")], [200.0, 200.0])
    weir.run(until_idle=True)
    assert shown(weir, "Noted") == [("A-21", ["B-101", "B-151"])]
    assert [result.documents for result in weir.results("Pairs")] == [["B-200", "A-22"]]


def test_each_query_has_its_own_window(weir):
    """Queries that differ only in their windows form one table, also through views with their own constants."""
    weir.execute(STREAMS.format("A", "B", "C"))
    weir.execute("""
        create feed Seen from A join last 2 items on B with [title = window.title] where [description contains 'Muse'];
        create feed View from Seen as $x where $x[title contains 'live'];
    """)
    text = "create query $name as from A join last $hours hours on B with [title = window.title]"
    weir.register_many(text, [{"name": f"q{hours}", "hours": hours} for hours in (1, 3, 2)])
    weir.publish("B", [item("Muse live")] * 4, [0.0, 3600.0, 2 * 3600.0, 2.5 * 3600.0])
    weir.step()
    weir.publish("A", [item("Muse live", "Muse")], [3 * 3600.0])
    weir.step()
    for name, held in (("q1", (3, 4)), ("q2", (2, 3, 4)), ("q3", (1, 2, 3, 4)), ("Seen", (3, 4)), ("View", (3, 4))):
        assert shown(weir, name) == [("A-1", [f"B-{i}" for i in held])], name
    assert "last 7200 s with title = window.title" in weir.explain("q2")
    assert "queries: 5, shapes: 3" in weir.explain("q2"), "in one group"
    assert "last 2 items" in weir.explain("View")
