"""JSON Feed (jsonfeed.org, versions 1 and 1.1) in feedparser's representation, so that items are built by the same
code.

In: the bytes of a feed. Out: the entries and the feed's own attributes under feedparser's names; raises ValueError if
it is not a JSON Feed. Values of a wrong type are ignored: one invalid item does not invalidate the feed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

VERSION = "://jsonfeed.org/version/"
BOM = b"\xef\xbb\xbf"


def is_json(body: bytes) -> bool:
    return body[:200].removeprefix(BOM).lstrip().startswith(b"{")


def json_entries(body: bytes, encoding: str = "utf-8") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    try:
        feed = json.loads(body.removeprefix(BOM).decode(encoding, "replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(feed, dict) or VERSION not in str(feed.get("version")):
        raise ValueError("it is JSON, but not a JSON Feed: its version is not that of jsonfeed.org")
    items = feed.get("items")
    entries = [_entry(item) for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    channel = {
        "title": _text(feed, "title"),
        "link": _text(feed, "home_page_url"),
        "subtitle": _text(feed, "description"),
        "language": _text(feed, "language"),
    }
    return entries, {name: value for name, value in channel.items() if value}


def _entry(item: dict[str, Any]) -> dict[str, Any]:
    html, plain = _text(item, "content_html"), _text(item, "content_text")
    entry: dict[str, Any] = {
        "id": _text(item, "id"),
        "title": _text(item, "title"),
        "link": _text(item, "url") or _text(item, "external_url"),
        "external_url": _text(item, "external_url") if item.get("url") else None,
        "image": _text(item, "image"),
        "language": _text(item, "language"),
        "authors": list(_authors(item)),
        "tags": [{"term": str(tag)} for tag in _list(item, "tags")],
        "content": [{"type": "text/html", "value": html}] if html else [{"type": "text/plain", "value": plain or ""}],
        "links": list(_attachments(item)),
    }
    if summary := _text(item, "summary"):
        entry |= {"summary": summary, "summary_detail": {"type": "text/plain", "value": summary}}
    for name, date in (("published", "date_published"), ("updated", "date_modified")):
        if text := _text(item, date):
            entry |= {name: text, f"{name}_parsed": _moment(text)}
    return {name: value for name, value in entry.items() if value}


def _authors(item: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The authors: version 1 has one, version 1.1 several."""
    for author in [*_list(item, "authors"), item.get("author")]:
        if isinstance(author, dict) and (name := _text(author, "name") or _text(author, "url")):
            yield {"name": name}


def _attachments(item: dict[str, Any]) -> Iterator[dict[str, str]]:
    for attached in _list(item, "attachments"):
        if isinstance(attached, dict) and (url := _text(attached, "url")):
            size = attached.get("size_in_bytes")
            yield {
                "rel": "enclosure",
                "href": url,
                "type": _text(attached, "mime_type") or "",
                "length": str(size) if isinstance(size, int | float) else "",
            }


def _moment(text: str) -> Any:
    try:
        return datetime.fromisoformat(text).utctimetuple()
    except (ValueError, OverflowError):
        return None


def _text(part: dict[str, Any], name: str) -> str | None:
    """A text or number as text: the ids of some feeds are numbers."""
    value = part.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)


def _list(part: dict[str, Any], name: str) -> list[Any]:
    value = part.get(name)
    return value if isinstance(value, list) else []
