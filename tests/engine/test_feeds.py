"""All of RoSeS through the running job: fetched and materialized feeds, replaced views."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fishweir
from fishweir.errors import QueryError
from tests.intake.feed_server import rss, serving

SHOUT = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:template match="/item">
<xsl:if test="title = 'Rock bad'"><xsl:message terminate="yes">no good</xsl:message></xsl:if>
<shout at="{@n}"><xsl:value-of select="title"/>!</shout></xsl:template></xsl:stylesheet>"""


def item(title: str, description: str = "-") -> str:
    return f"<item><title>{title}</title><description>{description}</description></item>"


def ids(weir, name):
    return [r.documents[0] for r in weir.results(name)]


def outputs(weir, name):
    return [r.output for r in weir.results(name)]


def test_registered_feeds_are_fetched_and_read(weir, tmp_path):
    Path("local.xml").write_bytes(rss("Rockfile", "Jazz"))
    with serving() as server:
        linked = 'See &lt;a href="http://muse.mu/tour"&gt;this&lt;/a&gt;'
        server.pages["/a"] = rss("Muse", "News", News=linked)
        server.pages["/c"] = rss("Url")
        script = f"""
            register feed {server.url("/a")} as Web;
            register feed {server.url("/gone")} as Gone;
            register feed local.xml as Local;
            create stream Same from 'local.xml' format feed every 1 hour;
            create feed Linked from (Web | Gone | Local) as $x where $x[description references 'muse.mu'];
            create feed Recent from (Web | Same) as $x where $x[pubdate > '2025-01-02T11:00Z' and year(pubdate) = 2025];
            create feed Direct from '{server.url("/c")}';
        """
        weir.execute(script)
        weir.run(until_idle=True)
        assert ids(weir, "Linked") == ["Web-2"]
        assert sorted(ids(weir, "Recent")) == ["Same-2", "Web-2"]
        assert [id.rpartition("-")[2] for id in ids(weir, "Direct")] == ["1"]
        assert [r.timestamp for r in weir.results("Linked")] == [1735898400.0]
        server.pages["/a"] = rss("Muse", "News", "Later", News=linked)
        assert weir.execute(script) == ["Linked", "Recent", "Direct"], "identical statements are skipped"
        weir.run(until_idle=True)
        assert sorted(ids(weir, "Recent")) == ["Same-2", "Web-2", "Web-3"], "new items, once"
        with pytest.raises(QueryError, match="the feed Web is read by Linked, Recent"):
            weir.execute("drop feed Web")
        weir.execute("drop feed Linked; drop feed Recent; drop feed Web; drop feed Gone")
        assert "Web" not in weir.status().streams
        weir.execute(f"register feed {server.url('/a')} as Web; create feed Again from Web;")
        weir.run(until_idle=True)
        assert ids(weir, "Again") == ["Web-1", "Web-2", "Web-3"], "a new stream under the old name"


def test_a_step_reads_feeds_completely(weir):
    weir.execute("create stream S; create feed Pushed from S;")
    Path("local.xml").write_bytes(rss("a"))
    weir.execute("register feed local.xml as Local; create feed All from Local;")
    weir.publish("S", [item("pushed")])
    assert weir.step()
    assert (ids(weir, "Pushed"), ids(weir, "All")) == (["S-1"], ["Local-1"])
    assert not weir.step()
    Path("local.xml").write_bytes(rss("a", "b"))
    assert weir.step()
    assert ids(weir, "All") == ["Local-1", "Local-2"]


def test_a_fifo_among_feeds(weir, caplog):
    os.mkfifo("pipe.xml")
    Path("local.xml").write_bytes(rss("a"))
    weir.execute("""
        create stream Pipe from 'pipe.xml' format feed;
        register feed local.xml as Local;
        create feed All from (Pipe | Local);
    """)
    weir.run(until_idle=True)
    assert ids(weir, "All") == ["Local-1"]
    assert f"feed Pipe: {os.path.abspath('pipe.xml')}: it is a FIFO, not a regular file" in caplog.text


def test_results_contain_no_password(weir, caplog):
    with serving() as server:
        server.pages["/a"], url = rss("a"), server.url("/a").replace("http://", "http://ann:secret@")
        with pytest.raises(QueryError, match="contains a password and would become the name of the feed"):
            weir.execute(f"create feed Direct from '{url}'")
        weir.execute(f"register feed {url} as Web; register feed {url}/gone as Gone")
        weir.execute("create feed All from (Web | Gone)")
        weir.run(until_idle=True)
        (result,) = weir.results("All")
        assert server.requests[0][1]["authorization"].startswith("Basic ")
        assert "secret" not in str(result)
        assert f"feed Gone: {server.url('/a')}/gone: the server answered 404" in caplog.text
        assert "secret" not in caplog.text
        assert "secret" not in str(weir.status())
        assert "secret" not in weir.explain()


def test_materialized_with_a_stylesheet(weir):
    Path("shout.xsl").write_text(SHOUT)
    weir.execute("""
        create stream News;
        create feed Rock from News as $n where $n[title contains 'rock'];
        register feed Rock apply 'shout.xsl' as Shouts;
        register feed Rock as Copy;
        create feed Loud from Shouts as $s where $s[contains 'live'];
        create feed Copied from (Copy | Shouts) as $s where $s[contains 'live'];
        register feed Copied as Third;
        create feed Last from Third;
        create said where <shout>$t</> in 'Shouts' construct <said>$t</said>;
    """)
    news = ["Rock live", "Jazz live", "Rock bad", "Rock"]
    weir.publish("News", [item(title) for title in news], timestamps=[1, 2, 3, 4])
    weir.run(until_idle=True)
    assert outputs(weir, "said") == ["<said>Rock live!</said>", "<said>Rock!</said>"]
    assert [(r.documents, r.timestamp) for r in weir.results("Loud")] == [(["Shouts-1"], 1.0)]
    assert sorted(ids(weir, "Copied")) == ["Copy-1", "Shouts-1"]
    assert sorted(ids(weir, "Last")) == ["Third-1", "Third-2"], "over three levels in one run"
    (aside,) = weir.set_aside()
    assert (aside.stream, aside.document, aside.body) == ("Shouts", "Shouts-2", item("Rock bad").encode())
    assert "News-3: the stylesheet shout.xsl fails: no good" in aside.reason
    weir.run(until_idle=True)
    assert len(outputs(weir, "said")) == 2, "nothing is repeated"
    with pytest.raises(QueryError, match="the feed Rock is read by Copy, Shouts"):
        weir.execute("drop feed Rock")
    with pytest.raises(QueryError, match="Shouts is read by"):
        weir.execute("drop feed Shouts")
    with pytest.raises(QueryError, match="the feeds read each other: Rock -> Loud -> Shouts -> Rock"):
        weir.execute("create or replace feed Rock from (News | Loud)")


def test_materialized_from_its_registration_on(weir):
    weir.execute("create stream S; create feed F from S;")
    weir.publish("S", [item("before")])
    weir.run(until_idle=True)
    weir.execute("register feed F as M; create feed G from M;")
    weir.publish("S", [item("after")])
    weir.run(until_idle=True)
    assert outputs(weir, "G") == [item("after")]


CRASH = """
import os, sys
from fishweir import testing
from fishweir.engine import materialize, positions

def crash(*_):
    os._exit(7)

with testing.open("home") as weir:
    if sys.argv[1] == "after":
        positions.write_json = crash        # the entries are in the log, the note of it is not
    else:
        materialize.append = crash
    weir.run(until_idle=True)
"""


def test_a_crash_neither_loses_nor_repeats_items(weir, tmp_path):
    weir.execute("create stream S; create feed F from S; register feed F as M; create feed G from M;")
    weir.publish("S", [item("a"), item("b")])
    for when in ("before", "after"):
        done = subprocess.run([sys.executable, "-c", CRASH, when], cwd=tmp_path, capture_output=True)
        assert done.returncode == 7, done.stderr.decode()
    weir.run(until_idle=True)
    assert ids(weir, "G") == ["M-1", "M-2"]
    assert ids(weir, "F") == ["S-1", "S-2"]


def test_a_feed_is_replaced_under_its_readers(weir):
    weir.execute("""
        create stream S; create stream T;
        create feed A from S as $s where $s[title contains 'one'];
        create feed B from A;
        create feed C from (B | T as $t) as $all where $all[not contains 'never'];
        create query Q as from C where [contains 'x'] do append 'q.jsonl';
        from C where [contains 'unnamed'];
    """)
    weir.publish("S", [item("one x"), item("two x"), item("one unnamed")])
    weir.run(until_idle=True)
    changed = "create or replace feed A from (S | T) as $s where $s[title contains 'two']"
    assert weir.execute(changed) == ["A"]
    assert weir.execute(changed) == ["A"], "identical statements are skipped"
    weir.publish("S", [item("one x"), item("two x"), item("two never"), item("two unnamed")])
    weir.run(until_idle=True)
    assert ids(weir, "A") == ["S-1", "S-3", "S-5", "S-6", "S-7"]
    assert ids(weir, "B") == ids(weir, "A")
    assert ids(weir, "C") == ["S-1", "S-3", "S-5", "S-7"]
    assert ids(weir, "Q") == ["S-1", "S-5"]
    assert ids(weir, "q1") == ["S-3", "S-7"]
    assert weir.execute("from C where [contains 'unnamed']") == ["q1"], "it is still the same query"
    assert Path("q.jsonl").read_text().count("\n") == 2
    assert weir.status("C").results == 4
    assert "'two'" in weir.explain("C") or '"two"' in weir.explain("C")
    assert weir.status("A").text == changed
    with pytest.raises(QueryError, match="A -> C -> B -> A") as caught:
        weir.execute("create or replace feed A from C")
    assert caught.value.column == len("create or replace feed A from C")
    with pytest.raises(QueryError, match="there is no feed 'Nowhere'"):
        weir.execute("create or replace feed B from Nowhere")
    weir.publish("S", [item("two x")])
    weir.run(until_idle=True)
    assert ids(weir, "Q") == ["S-1", "S-5", "S-8"], "what was refused changed nothing"


def test_replacing_while_the_job_runs(weir):
    weir.execute(
        "create stream S; create feed A from S where [contains 'w0'];"
        "create feed B from A; create feed C from B; create feed D from C;"
    )
    weir.start()
    expected = []
    for step in range(1, 6):
        weir.publish("S", [item(f"w{n}") for n in range(6)])
        weir.wait_idle()
        expected.append(f"S-{(step - 1) * 6 + step}")
        weir.execute(f"create or replace feed A from S where [contains 'w{step}']")
    weir.stop()
    for name in "ABCD":
        assert ids(weir, name) == expected


def test_subscriptions(weir):
    Path("t.xsl").write_text(SHOUT)
    script = """
        create stream S; create feed F from S;
        subscribe to F apply 't.xsl' output mail 'me@mail.org' every 3 hours;
        subscribe to F output file 'F.rss' every 10 minutes;
        subscribe to S output http 'https://h.org/hook';
    """
    weir.execute(script)
    weir.execute(script)
    assert [s.target for s in weir.status("F").subscribers] == ["me@mail.org", str(Path("F.rss").absolute())]
    assert "delivers  mail me@mail.org, every 3 hours, by " in str(weir.status("F"))
    assert f"delivers  file {Path('F.rss').absolute()}, every 10 minutes" in weir.explain("F")
    assert "subscription to S: http https://h.org/hook, on change" in str(weir.status())
    with pytest.raises(QueryError, match="the feed F has subscribers: subscribe to F apply"):
        weir.execute("drop feed F")
    weir.execute("unsubscribe from F output mail 'me@mail.org'; unsubscribe from F; drop feed F")
    with pytest.raises(QueryError, match="no such subscription"):
        weir.execute("unsubscribe from F")


def test_many_feeds_in_bulk(weir):
    weir.execute("create stream a; create stream b; create feed v from b where [has title];")
    rows = [{"name": f"f{i}", "word": f"w{i}", "no": f"n{i}"} for i in range(5_000)]
    where = "$y[title contains $word or contains '$no'] and $x[has title]"
    assert weir.register_many(f"create feed $name from (a | v as $x) as $y where {where}", rows) == 5_000
    weir.publish("a", [item("w7 w77"), item("n9 w9")])
    weir.publish("b", [item("w7")])
    weir.run(until_idle=True)
    assert ids(weir, "f7") == ["a-1", "b-1"]
    assert (ids(weir, "f77"), ids(weir, "f9")) == (["a-1"], ["a-2"])
    weir.execute("create feed over from (f7 | f9)")
    with pytest.raises(QueryError, match="the feed f7 already exists"):
        weir.register_many("create feed $name from a", [{"name": "f7"}])
    with pytest.raises(QueryError, match="read by f0, f1"):
        weir.execute("drop feed v")
    weir.execute("create or replace feed v from a")
    weir.publish("b", [item("w7")])
    weir.publish("a", [item("w7")])
    weir.run(until_idle=True)
    assert ids(weir, "over") == ["a-3"]
    assert ids(weir, "f7") == ["a-1", "b-1", "a-3"], "once, though it comes by two ways"


ERRORS = [
    # statement, the word it points to, words of the message
    ("register feed ftp://h.org/x as N", "ftp", "expected http, https or file"),
    ("register feed http:///x as N", "http", "does not name a host"),
    ("register feed nowhere/x.xml as N", "nowhere/x.xml", "does not exist"),
    ("register feed nowhere as N", "nowhere", "neither a feed nor a file 'nowhere'"),
    ("register feed nowhere apply 't.xsl' as N", "nowhere", "there is no feed 'nowhere'"),
    ("register feed S apply 't.xsl' as N", "S apply", "S is a stream, not a published feed"),
    ("register feed F apply 'none.xsl' as N", "none.xsl", "none.xsl cannot be read: No such file"),
    ("register feed F apply 'bad.xsl' as N", "bad.xsl", "bad.xsl, line 5"),
    ("register feed F apply 'broken.xsl' as N", "broken.xsl", "broken.xsl, line 2"),
    ("register feed F as S", "S", "already exists"),
    ("register feed F as G", "G", "there is already a feed with this name"),
    ("create feed S from F", "S from", "there is already a stream with this name"),
    ("create stream F", "", "there is already a feed with this name"),
    ("create feed F from S where [has x]", "", "the feed F already exists with a different definition"),
    ("create feed X from (F | Nowhere) where [contains 'Nowhere']", "Nowhere) ", "there is no feed 'Nowhere'"),
    ("create feed X from (F | X)", "X)", "the feeds read each other: X -> X"),
    ("create or replace feed F from G", "G", "the feeds read each other: F -> G -> F"),
    ("create or replace feed S from F", "S from", "there is already a stream with this name"),
    ("create or replace query F from G", "query", "expected 'feed'"),
    ("subscribe to Nowhere output file 'x'", "Nowhere", "no feed 'Nowhere' to subscribe to"),
    ("subscribe to F output pigeon 'x'", "pigeon", "actions: append, atom, call, file, http, jsonfeed, jsonl, mail"),
    ("subscribe to F output mail 'x'", "'x'", "not a mail address"),
    ("subscribe to F apply 'none.xsl' output file 'x'", "none.xsl", "cannot be read"),
    ("drop feed S", "", "not registered as a feed"),
    ("drop feed Nowhere", "", "there is no feed Nowhere"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "word", "words"), ERRORS, ids=[case[0] for case in ERRORS])
def test_errors(tmp_path, monkeypatch, statement, word, words):
    monkeypatch.chdir(tmp_path)
    Path("t.xsl").write_text(SHOUT)
    Path("broken.xsl").write_text("<a>\n<b></a>")
    Path("bad.xsl").write_text(SHOUT.replace("\n", "\n\n", 1).replace("xsl:value-of select", "xsl:value-of selec"))
    with fishweir.open("home") as weir:
        weir.execute("create stream S; create feed F from S; create feed G from F")
        version = weir.status().version
        with pytest.raises(fishweir.FishweirError, match=words) as caught:
            weir.execute(f"\n  {statement};")
        assert weir.status().version == version, "what is refused changes nothing"
    if word:
        assert caught.value.line == 2
        assert str(caught.value).split("\n")[1][caught.value.column + 1 :].startswith(word)


def test_stylesheets_cannot_access_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("secret.xml").write_text("<s>secret</s>")
    reading = SHOUT.replace('title"/>!', f"document('{tmp_path}/secret.xml')\"/>!")
    Path("r.xsl").write_text(reading)
    from fishweir.delivery.stylesheets import BadItem, Stylesheet

    try:
        made = Stylesheet("r.xsl").apply(item("x"))
    except BadItem:
        return
    assert b"secret" not in made
