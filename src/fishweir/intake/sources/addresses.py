"""Where a feed is: on the web, or in a file."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit


def is_url(place: str) -> bool:
    return urlsplit(place).scheme in ("http", "https")


def file_of(place: str) -> str:
    """The path of a file URL, or the path as it is."""
    return unquote(urlsplit(place).path) if place.lower().startswith("file:") else place
