"""`notify 'URL'`: all services that Apprise supports: Slack, Telegram, ntfy, SMS and a hundred more.

Tokens in such URLs are secrets: `notify 'tgram://{secret bot}/12345'`.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from fishweir.delivery.options import BadArgument, without_secrets
from fishweir.delivery.outputs.entries import entry_of
from fishweir.delivery.payload import NotDelivered, NotRewindable, Payload

MOST = 20
"""The maximum number of results in a message; the number of further results is stated."""


class Notify(NotRewindable):
    own = True
    at_once = 1_000

    def __init__(self, url: str) -> None:
        self.url = url

    @staticmethod
    def check(arguments: Sequence[str]) -> None:
        import apprise

        if "{secret" in arguments[0]:
            return  # the final URL is not known here
        if apprise.Apprise.instantiate(arguments[0], suppress_exceptions=True) is None:
            raise BadArgument(arguments[0], f"'{without_secrets(arguments[0])}' is not a URL that Apprise supports")

    @staticmethod
    def place(arguments: Sequence[str]) -> tuple[str, str]:
        parts = urlsplit(without_secrets(arguments[0]))
        return f"notify:{arguments[0]}", f"{parts.scheme}:{parts.hostname}"

    def deliver(self, results: Payload) -> None:
        import apprise

        service = apprise.Apprise.instantiate(self.url, suppress_exceptions=True)
        if service is None:
            raise NotDelivered("Apprise does not support this URL", never=True)
        entries = [entry_of(result, results.media) for result in results[:MOST]]
        lines = [f"{entry.title} {entry.link or ''}".strip() for entry in entries]
        lines += [f"and {len(results) - MOST:,} more"] if len(results) > MOST else []
        if not service.notify(body="\n".join(lines), title=", ".join(results.feeds)):
            raise NotDelivered("the service rejected the notification")
