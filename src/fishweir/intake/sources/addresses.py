"""The address of a feed: a URL or a file. A URL may contain a user name and a password, which are never shown."""

from __future__ import annotations

import glob
from urllib.parse import unquote, urlsplit


def is_glob(path: str) -> bool:
    return glob.has_magic(path)


def is_url(place: str) -> bool:
    return urlsplit(place).scheme in ("http", "https")


def file_of(place: str) -> str:
    """The path of a file URL, or the unchanged path."""
    return unquote(urlsplit(place).path) if place.lower().startswith("file:") else place


def credentials(place: str) -> tuple[str, str] | None:
    """The user and the password of a URL, or None."""
    given, at, _ = urlsplit(place).netloc.rpartition("@") if is_url(place) else ("", "", "")
    user, _, password = given.partition(":")
    return (unquote(user), unquote(password)) if at else None


def without_credentials(place: str) -> str:
    """The URL without user name and password, for messages and storage."""
    if credentials(place) is None:
        return place
    url = urlsplit(place)
    return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()


def server_of(url: str) -> str:
    """Scheme, host and port of a URL."""
    parts = urlsplit(without_credentials(url))
    return f"{parts.scheme}://{parts.netloc}".lower()


def with_credentials(url: str, place: str) -> str:
    """The URL with the user and password of `place` if both are on the same server; otherwise unchanged."""
    given, at, _ = urlsplit(place).netloc.rpartition("@")
    if not at or server_of(url) != server_of(place):
        return url
    parts = urlsplit(without_credentials(url))
    return parts._replace(netloc=f"{given}@{parts.netloc}").geturl()
