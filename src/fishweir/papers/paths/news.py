"""News documents of NITF's shape, and documents with parts of equal size in which paths can be suspended."""

from __future__ import annotations

import random

from fishweir.algebra.nodes import Step
from fishweir.evaluate.witnesses.path_tables import Path
from fishweir.papers.paths.documents import grow

PLACE = {"city": "text", "country": "text"}
INLINE = {"em": "text", "org": "text", "person": "text", "location": PLACE, "money": "text"}
PARAGRAPHS = {"p*": INLINE}
HEAD = {
    "title": "text", "meta*@name": "text",
    "tobject@tobject.type": {"tobject.property": "text", "tobject.subject*@tobject.subject.refnum": "text"},
    "docdata": {
        "doc-id@id-string": "text", "urgency@ed-urg": "text", "date.issue@norm": "date", "date.release@norm": "date",
        "doc.copyright@holder": "text", "key-list": {"keyword*@key": "text"},
        "identified-content": {"org*": "text", "person*": "text", "location*": PLACE},
    },
    "pubdata@type": "text", "revision-history*": "text",
}  # fmt: skip
BLOCK = {
    **PARAGRAPHS, "media": {"media-reference@source": "text", "media-caption": PARAGRAPHS},
    "ul": {"li*": INLINE}, "table": {"tr*": {"td*": "text"}}, "bq": {"block": PARAGRAPHS},
}  # fmt: skip
BODY = {
    "body.head": {
        "hedline": {"hl1": "text", "hl2*": "text"}, "note*": PARAGRAPHS, "byline": {"person": "text", "byttl": "text"},
        "distributor": {"org": "text"}, "dateline": {"location": {"city": "text"}, "story.date@norm": "date"},
        "abstract": PARAGRAPHS,
    },
    "body.content": {"block*": BLOCK},
    "body.end": {"tagline": "text", "bibliography": "text"},
}  # fmt: skip


def news(seed: int) -> bytes:
    return grow("nitf", {"head": HEAD, "body": BODY}, random.Random(seed), 3).encode()


PARTS = 10


def parted(seed: int) -> bytes:
    """A document of ten parts with the same content under different names."""
    inner = "".join(grow("block", BLOCK, random.Random(seed + i), 3) for i in range(3))
    return f"<news>{''.join(f'<part{i}>{inner}</part{i}>' for i in range(PARTS))}</news>".encode()


def paths_below(part: int) -> list[Path]:
    """Paths to all elements of a part that have text."""
    found: list[Path] = []

    def below(above: Path, grammar: object) -> None:
        if not isinstance(grammar, dict):
            found.append(above)
            return
        for key, inner in grammar.items():
            below((*above, Step(key.partition("@")[0].rstrip("*"))), inner)

    below((Step("news"), Step(f"part{part}"), Step("block")), BLOCK)
    return found
