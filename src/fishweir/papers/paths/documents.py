"""The documents of `fishweir bench paths`: XMark's auction site and C-CDA's clinical documents.

In: xml_docs of the shared data, or nothing. Out: sets of documents as bytes, with the prefixes of their namespaces. If
the data is absent, documents of the same shape are generated, and the set records that.
"""

from __future__ import annotations

import random
import tarfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fishweir.algebra.documents import BadDocument, parse_document
from fishweir.papers.experiment.data import data_folder

ARCHIVE = "xml_docs.tar.xz"
PREFIXES = {"h": "urn:hl7-org:v3", "sdtc": "urn:hl7-org:sdtc", "xsi": "http://www.w3.org/2001/XMLSchema-instance"}


@dataclass(frozen=True)
class DocumentSet:
    name: str
    source: str
    bodies: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.bodies))


def load_sets(quick: bool) -> tuple[DocumentSet, ...]:
    """XMark and CDA. A quick run has a few documents of each, generated ones for XMark."""
    folder = data_folder("xml_docs")
    archive = folder / ARCHIVE if folder else None
    if archive is None or not archive.exists():
        return (
            DocumentSet("XMark", "generated", (auction_site(0, 4 if quick else 80),)),
            DocumentSet("CDA", "generated", tuple(clinical_document(seed) for seed in range(12 if quick else 240))),
        )
    site, clinical = read_archive(archive)
    if quick:
        site, clinical = (auction_site(0, 4),), clinical[::20]
    return (
        DocumentSet("XMark", "generated, as the run is quick" if quick else "real: xmark_f0.01.xml", site),
        DocumentSet("CDA", "real: HL7/C-CDA-Examples", clinical),
    )


@lru_cache(maxsize=1)
def read_archive(archive: Path) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """The XMark document, and the well-formed clinical documents."""
    site: list[bytes] = []
    clinical: list[bytes] = []
    with tarfile.open(archive) as files:
        for member in sorted(files, key=lambda m: m.name):
            chosen = site if "xmark" in member.name else clinical if "cda/" in member.name else None
            file = files.extractfile(member) if member.isfile() and chosen is not None else None
            if file is None or chosen is None:
                continue
            body = file.read()
            try:
                parse_document(body)
            except BadDocument:
                continue
            chosen.append(body)
    return tuple(site), tuple(clinical)


# Generated documents of the same shape: a grammar defines the children of an element and how often they occur; the rest
# is random.

WORDS = ("gold", "ring", "offer", "chair", "stamp", "coin", "book", "lamp", "house", "ship", "rare", "old", "silver")
ITEM = {
    "location": "text", "quantity": "number", "name": "text", "payment": "text",
    "description": {"parlist": {"listitem*": {"text": {"keyword*": "text", "bold": "text", "emph": "text"}}}},
    "shipping": "text", "incategory*": "@category",
    "mailbox": {"mail*": {"from": "text", "to": "text", "date": "date", "text": {"keyword": "text", "bold": "text"}}},
}  # fmt: skip
SITE = {
    "regions": {region: {"item*@id": ITEM} for region in ("africa", "asia", "europe", "namerica", "samerica")},
    "categories": {"category*@id": {"name": "text", "description": {"text": {"keyword*": "text"}}}},
    "people": {
        "person*@id": {
            "name": "text", "emailaddress": "text", "phone": "text",
            "address": {"street": "text", "city": "text", "country": "text", "zipcode": "number"},
            "profile@income": {"interest*": "@category", "education": "text", "business": "text", "age": "number"},
            "watches": {"watch*": "@open_auction"},
        }
    },
    "open_auctions": {
        "open_auction*@id": {
            "initial": "number", "bidder*": {"date": "date", "personref": "@person", "increase": "number"},
            "current": "number", "itemref": "@item", "seller": "@person", "type": "text",
            "interval": {"start": "date", "end": "date"},
        }
    },
    "closed_auctions": {
        "closed_auction*": {
            "seller": "@person", "buyer": "@person", "itemref": "@item", "price": "number", "date": "date",
            "annotation": {"author": "@person", "description": {"parlist": {"listitem*": {"text": "text"}}}},
        }
    },
}  # fmt: skip
CODE = "@code"
OBSERVATION = {
    "templateId*": "@root", "id": "@root", "code": CODE, "statusCode": CODE, "effectiveTime": {"low": "@value"},
    "value": CODE, "participant": {"participantRole": {"playingEntity": {"code": CODE, "name": "text"}}},
}  # fmt: skip
SECTION = {
    "templateId*": "@root", "code": CODE, "title": "text",
    "text": {"table": {"thead": {"tr": {"th*": "text"}}, "tbody": {"tr*": {"td*": "text"}}}},
    "entry*@typeCode": {
        "act@classCode": {**OBSERVATION, "entryRelationship*": {"observation@classCode": OBSERVATION}},
        "organizer": {"component*": {"observation@classCode": OBSERVATION}},
        "substanceAdministration": {"doseQuantity": "@value", "author": {"time": "@value", "assignedAuthor": CODE}},
    },
}  # fmt: skip
CLINICAL = {
    "realmCode": CODE, "typeId": "@root", "templateId*": "@root", "id": "@root", "code": CODE, "title": "text",
    "recordTarget": {"patientRole": {"id": "@root", "addr": {"city": "text", "state": "text", "postalCode": "number"},
                                     "patient": {"name": {"given*": "text", "family": "text"}, "birthTime": "@value"}}},
    "author": {"time": "@value", "assignedAuthor": {"id": "@root", "telecom": "@value"}},
    "component": {"structuredBody": {"component*": {"section": SECTION}}},
}  # fmt: skip


def auction_site(seed: int, often: int) -> bytes:
    """One document of XMark's shape. Repeated elements of a list occur up to `often` times."""
    return grow("site", SITE, random.Random(seed), often).encode()


def clinical_document(seed: int) -> bytes:
    body = grow("ClinicalDocument", CLINICAL, random.Random(seed), 3)
    return body.replace("<ClinicalDocument", f'<ClinicalDocument xmlns="{PREFIXES["h"]}"', 1).encode()


def grow(name: str, grammar: object, draw: random.Random, often: int) -> str:
    """An element with the content that a grammar defines."""
    return _element(name, "", grammar, draw, often)


def _elements(key: str, below: object, draw: random.Random, often: int) -> str:
    """The elements for a key of the grammar: `name` (mostly present), `name*` (several) or `name@attribute`."""
    name, _, attribute = key.partition("@")
    several, name = name.endswith("*"), name.rstrip("*")
    count = draw.randint(often // 2, often) if several else int(draw.random() < 0.9)
    return "".join(_element(name, attribute, below, draw, 3 if several else often) for _ in range(count))


def _element(name: str, attribute: str, below: object, draw: random.Random, often: int) -> str:
    own = f' {attribute}="{name}{draw.randrange(1000)}"' if attribute else ""
    if isinstance(below, dict):
        inner = "".join(_elements(key, value, draw, often) for key, value in below.items())
    elif isinstance(below, str) and below.startswith("@"):
        own, inner = f' {below[1:]}="{name[:1]}{draw.randrange(200)}"', ""
    elif below == "number":
        inner = str(draw.randrange(100))
    elif below == "date":
        inner = f"{draw.randint(1, 12):02}/{draw.randint(1, 28):02}/{draw.randint(1998, 2001)}"
    else:
        inner = " ".join(draw.choices(WORDS, k=draw.randint(1, 4)))
    return f"<{name}{own}>{inner}</{name}>"
