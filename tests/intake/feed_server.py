"""A real HTTP server with responses set by the test, and feeds to serve."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FeedServer:
    """`pages` maps paths to bodies or to (status, headers, body); `requests` has the requests' headers.

    A body may be a function that yields its parts, as long as the client reads.
    """

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.delay = 0.0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                time.sleep(owner.delay)
                page = owner.pages.get(self.path, (404, {}, b"nothing"))
                status, headers, body = page if isinstance(page, tuple) else (200, {}, page)
                if "ETag" in headers and self.headers.get("If-None-Match") == headers["ETag"]:
                    status, body = 304, b""
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    for part in body() if callable(body) else [body]:
                        self.wfile.write(part)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def url(self, path: str = "/feed") -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"


@contextmanager
def serving() -> Iterator[FeedServer]:
    server = FeedServer()
    threading.Thread(target=server.server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()


def rss(*titles: str, **more: str) -> bytes:
    """An RSS feed, the newest item first, one per day from January 2, 2025 on.

    Items `a`, `b`, ... and `t0`, `t1`, ... keep their days, regardless of other items in the feed.
    """
    items = [
        f"<item><title>{title}</title><guid>{title}</guid><link>http://h.org/{title}</link>"
        f"<description>{more.get(title, 'About ' + title)}</description>"
        f"<pubDate>{_day(title, n):02d} Jan 2025 10:00:00 GMT</pubDate></item>"
        for n, title in enumerate(titles, 2)
    ]
    return (
        '<?xml version="1.0"?><rss version="2.0"><channel><title>Chan</title><language>en</language>'
        f"{''.join(reversed(items))}</channel></rss>"
    ).encode()


def _day(title: str, place: int) -> int:
    if title[1:].isdecimal():
        return int(title[1:]) + 2
    return ord(title) - ord("a") + 2 if len(title) == 1 else place
