"""The examples of the papers, from statements to the mailbox: RoSeS' concerts by mail and as a feed with photos
(section 3.1), NiagaraCQ's falling stocks (section 1).
"""

from __future__ import annotations

from pathlib import Path

import feedparser

from fishweir.testing import Clock, Weir
from tests.delivery.servers import Mailbox

HOUR = 3600.0
STYLESHEET = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">{}</xsl:stylesheet>'
TITLE = STYLESHEET.format(
    '<xsl:output method="text"/><xsl:template match="/"><xsl:value-of select="item/title"/></xsl:template>'
)
PHOTOS = STYLESHEET.format(
    """<xsl:template match="/item"><item><xsl:copy-of select="title"/><description>
    <xsl:for-each select="annotation/item"><photo><xsl:value-of select="link"/></photo></xsl:for-each></description>
    </item></xsl:template>"""
)
SCRIPT = """
create stream FriendsFacebookStream; create stream EventAnnounces; create stream FollowedTwitterStream;
create stream MuseNews; create stream MusicPhotos; create stream FriendsPhotos;

create feed RockConcertStream
from (FriendsFacebookStream | EventAnnounces as $ca | FollowedTwitterStream) as $r
where $ca[title contains 'rock'] and $r[description contains 'concert'];

create feed MusePhotoStream
from (RockConcertStream as $r | MuseNews) as $main
join last 3 months on (MusicPhotos as $m | FriendsPhotos)
    with $main[title similar window.title]
where $r[description contains 'Muse'] and $m[category = 'rock'];

register feed MusePhotoStream apply 'IncludePhotos.xml' as MuseWithPhotos;

subscribe to RockConcertStream apply “Title.xml” output mail “me@mail.org” every 3 hours;
subscribe to RockConcertStream output file “RockConcertStream.rss” every 10 minutes;
subscribe to MusePhotoStream apply 'IncludePhotos.xml' output file 'photos.txt';
subscribe to MuseWithPhotos output rss 'with-photos.rss';
"""


def item(title: str, description: str = "", link: str = "", category: str = "") -> str:
    fields = {"title": title, "description": description, "link": link, "category": category}
    return f"<item>{''.join(f'<{name}>{text}</{name}>' for name, text in fields.items() if text)}</item>"


def test_bobs_social_event(weir: Weir, clock: Clock, mailbox: Mailbox) -> None:
    Path("Title.xml").write_text(TITLE)
    Path("IncludePhotos.xml").write_text(PHOTOS)
    weir.execute(SCRIPT)
    weir.publish("MusicPhotos", [item("Muse live in Paris", link="https://p.org/1", category="rock")])
    weir.publish("FriendsPhotos", [item("Muse live in Paris", link="https://p.org/2")])
    weir.step()
    weir.publish("EventAnnounces", [item("rock night", "a concert of Muse"), item("jazz night", "a concert")])
    weir.publish("FriendsFacebookStream", [item("Muse live in Paris", "the Muse concert", "https://f.org/1")])
    weir.step()
    clock.advance(600)
    weir.step()
    read = feedparser.parse(Path("RockConcertStream.rss").read_bytes())
    assert (read.bozo, {entry.title for entry in read.entries}) == (False, {"rock night", "Muse live in Paris"})
    weir.publish("FollowedTwitterStream", [item("tonight", "concert in the park")])
    weir.step()
    assert mailbox.mails == []
    clock.now = 1000 + 3 * HOUR
    weir.step()
    (mail,) = mailbox.mails
    text = mail.get_body(("plain",)).get_content().replace("\r\n", "\n")  # type: ignore[union-attr]
    assert sorted(text.split("\n\n")) == ["Muse live in Paris", "rock night", "tonight\n"]
    assert mail["Subject"] == "RockConcertStream: 3 results"
    clock.now = 1000 + 6 * HOUR
    weir.step()
    assert len(mailbox.mails) == 1, "nothing new, no mail"
    assert len(feedparser.parse(Path("RockConcertStream.rss").read_bytes()).entries) == 3
    shown = Path("photos.txt").read_text()
    assert "<photo>https://p.org/1</photo><photo>https://p.org/2</photo>" in shown.replace("\n", "")
    (entry,) = feedparser.parse(Path("with-photos.rss").read_bytes()).entries
    assert entry.title == "Muse live in Paris"
    assert "https://p.org/1" in entry.summary


DAY = 24 * HOUR
DROPS = Path(__file__).parents[2] / "examples" / "drops.fw"


def test_dell_or_micron_drops_while_intel_stays(weir: Weir, clock: Clock, mailbox: Mailbox) -> None:
    def quotes(day: float, **prices: float) -> None:
        rows = "".join(f"<Quote><Symbol>{s}</Symbol><Price>{p:g}</Price></Quote>" for s, p in prices.items())
        Path("quotes.xml").write_text(f"<Quotes>{rows}</Quotes>")
        clock.now = 1000 + day * DAY
        while weir.step():
            pass

    def texts() -> list[str]:
        return [mail.get_body(("plain",)).get_content().strip() for mail in mailbox.mails]  # type: ignore[union-attr]

    Path("quotes.xml").write_text("<Quotes/>")
    weir.execute(DROPS.read_text())
    quotes(0, DELL=100, MU=50, INTC=20)
    quotes(1, DELL=94, MU=50, INTC=20)
    assert len(mailbox.mails) == 1, "a drop at once"
    assert texts()[0].split() == ["DELL", "100", "94"]
    quotes(10, DELL=94, MU=50, INTC=21)  # Intel does not stay
    quotes(20, DELL=94, MU=40, INTC=21)
    quotes(30, DELL=93, MU=40, INTC=21)  # less than 5%
    assert len(mailbox.mails) == 2
    quotes(130, DELL=93, MU=40, INTC=22)  # too late to matter
    quotes(131, DELL=93, MU=40, INTC=22)
    (last,) = texts()[2:]
    assert "MU" in last
    assert "DELL" not in last
    assert mailbox.mails[-1]["Subject"].startswith("notify_me: MU 40")
    assert set(mailbox.recipients) == {"me@example.org"}
