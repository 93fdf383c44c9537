"""XML on the web: each new version as a document, or its new elements (`split on`)."""

from __future__ import annotations

import asyncio
import copy
import hashlib
from collections import Counter

from fishweir.algebra.documents import BadDocument, elements, parse_document
from fishweir.algebra.simple_paths import parse_path
from fishweir.intake.sources.fetched import Read
from fishweir.intake.sources.items import Feed, Item
from fishweir.intake.sources.rows import digest
from fishweir.intake.sources.split import context_of, is_outermost, serialise


def xml_reader(split: str | None) -> Read:
    """A function that finds the documents of a body. A malformed body is one document, which is set aside."""

    async def read(body: bytes, _url: str, _content_type: str) -> Feed:
        return whole(body) if split is None else await asyncio.to_thread(parts, body, split)

    return read


def whole(body: bytes) -> Feed:
    return Feed((Item(hashlib.blake2b(body, digest_size=8).hexdigest(), None, body),))


def parts(body: bytes, split: str) -> Feed:
    """The outermost elements at a path; equal ones are distinguished by a number."""
    try:
        root = parse_document(body, comments=True)
    except BadDocument as error:
        return Feed((), str(error))
    path, met, items = parse_path(split), Counter[str](), []
    for element in elements(root):
        if is_outermost(element, path):
            own = copy.deepcopy(element)
            own.tail = None
            key = digest(own)
            met[key] += 1
            items.append(Item(f"{key}#{met[key]}", None, serialise(element), context=context_of(element)))
    return Feed(tuple(items))
