"""`mail 'ADDRESS'` (NiagaraCQ's `MailTo`): a digest of the results since the last one, as text and HTML.

Mail is sent through FISHWEIR_SMTP=smtp[s]://[user:password@]host:port. With smtp://, the connection is encrypted if the
server supports it; a password is sent only over an encrypted connection or to this machine. The message id is the same
in every attempt of a delivery, so that mail servers can recognize repetitions.

FISHWEIR_MAIL_FROM is the sender; FISHWEIR_URL is the address at which subscribers reach the service
that answers `<URL>/unsubscribe/TOKEN` (delivery/unsubscribing.py).
"""

from __future__ import annotations

import html
import os
import re
import smtplib
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from functools import cache
from urllib.parse import quote, unquote, urlsplit

from fishweir.delivery.options import BadArgument
from fishweir.delivery.outputs.entries import Entry, entry_of, printable
from fishweir.delivery.payload import NotDelivered, NotRewindable, Payload
from fishweir.guard import certificates

PATIENCE = 20.0
MOST = 500
"""The maximum number of results in a digest; the number of further results is stated."""
_ADDRESS = re.compile(r"[^@\s<>,;\"()]+@[^@\s<>,;\"()]+")
LOCAL = ("localhost", "127.0.0.1", "::1")


class Mail(NotRewindable):
    own = True

    def __init__(self, address: str) -> None:
        self.address = address.removeprefix("mailto:")

    @staticmethod
    def check(arguments: Sequence[str]) -> None:
        address = arguments[0].removeprefix("mailto:")
        if not _ADDRESS.fullmatch(address) or address.startswith(".") or ".." in address:
            raise BadArgument(arguments[0], f"'{arguments[0]}' is not a mail address")

    @staticmethod
    def place(arguments: Sequence[str]) -> tuple[str, str]:
        return f"mail:{arguments[0].removeprefix('mailto:')}", "smtp"

    def deliver(self, results: Payload) -> None:
        server = Server()
        message = digest(self.address, server.sender, results)
        try:
            server.send(message, server.sender, self.address)
        except smtplib.SMTPRecipientsRefused as error:
            code, reply = next(iter(error.recipients.values()))
            raise NotDelivered(f"{code} {reply.decode(errors='replace')}", never=code >= 500) from error
        except (smtplib.SMTPException, OSError) as error:
            raise NotDelivered(f"{type(error).__name__}: {error}") from error


class Server:
    """The mail server that FISHWEIR_SMTP names."""

    def __init__(self) -> None:
        url = os.environ.get("FISHWEIR_SMTP", "")
        parts = urlsplit(url)
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
            shown = "is not set" if not url else "is not the address of a mail server"
            raise NotDelivered(f"FISHWEIR_SMTP {shown}: write smtp[s]://[user:password@]host:port")
        self.secure, self.host = parts.scheme == "smtps", parts.hostname
        self.port = parts.port or (465 if self.secure else 25)
        self.user, self.password = unquote(parts.username or ""), unquote(parts.password or "")
        self.verified = "verify=no" not in parts.query
        named = self.user if "@" in self.user else f"fishweir@{socket.getfqdn()}"
        self.sender = os.environ.get("FISHWEIR_MAIL_FROM", named)

    def send(self, message: EmailMessage, sender: str, recipient: str) -> None:
        connection = self._connect()
        try:
            connection.send_message(message, parseaddr(sender)[1], [recipient])
        finally:
            with suppress(smtplib.SMTPException, OSError):
                connection.quit()

    def _connect(self) -> smtplib.SMTP:
        if self.secure:
            context = _context(self.verified)
            connection: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=PATIENCE, context=context)
        else:
            connection = smtplib.SMTP(self.host, self.port, timeout=PATIENCE)
        try:
            connection.ehlo()
            encrypted = self.secure
            if not encrypted and connection.has_extn("starttls"):
                connection.starttls(context=_context(self.verified))
                connection.ehlo()
                encrypted = True
            if self.user:
                if not encrypted and self.host not in LOCAL:
                    raise smtplib.SMTPException("the server does not support encryption, so the password was not sent")
                connection.login(self.user, self.password)
        except BaseException:
            connection.close()
            raise
        return connection


def _context(verified: bool) -> ssl.SSLContext:
    """The TLS context. It is shared because loading the certificates takes longer than sending a mail."""
    return _context_of(verified, *certificates())


@cache
def _context_of(verified: bool, *_: tuple[str, int]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not verified:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def digest(address: str, sender: str, payload: Payload) -> EmailMessage:
    """One message with all results since the last message."""
    entries = [entry_of(result, payload.media) for result in payload[:MOST]]
    name = printable(", ".join(payload.feeds[:3]) or payload[0].query)
    more = len(payload) - len(entries)
    message = EmailMessage()
    message["From"], message["To"] = sender, address
    message["Subject"] = f"{name}: {entries[0].title}" if len(payload) == 1 else f"{name}: {len(payload):,} results"
    message["Date"] = format_datetime(datetime.fromtimestamp(payload.now, UTC))
    domain = parseaddr(sender)[1].rpartition("@")[2] or "fishweir"
    message["Message-ID"] = f"<{payload.key}@{domain}>"
    message["List-Id"] = f"{' '.join(re.findall(r'[A-Za-z0-9]+', name)) or 'results'} <{payload.token}.{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message["List-Unsubscribe"] = ", ".join(f"<{place}>" for place in unsubscribe_places(payload.token, sender))
    message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(_text(entries, payload, more))
    message.add_alternative(_html(name, entries, payload, more), subtype="html")
    return message


def unsubscribe_places(token: str, sender: str) -> tuple[str, str]:
    """The addresses for unsubscribing: with one click, or by a mail to the sender."""
    base = os.environ.get("FISHWEIR_URL", f"https://{socket.getfqdn()}").rstrip("/")
    return f"{base}/unsubscribe/{token}", f"mailto:{quote(parseaddr(sender)[1], '@')}?subject=unsubscribe%20{token}"


def _text(entries: Sequence[Entry], payload: Payload, more: int) -> str:
    if payload.media == "text":
        shown = [str(result.output).strip() for result in payload[:MOST]]
    else:
        shown = ["\n".join(filter(None, (e.title, e.link, e.summary if e.summary != e.title else ""))) for e in entries]
    return "\n\n".join([*map(printable, shown), *([f"and {more:,} more"] if more else [])]) + "\n"


def _html(name: str, entries: Sequence[Entry], payload: Payload, more: int) -> str:
    if payload.media == "html":
        shown = [printable(str(result.output)) for result in payload[:MOST]]
    elif payload.media == "text":
        shown = [f"<pre>{html.escape(printable(str(result.output).strip()))}</pre>" for result in payload[:MOST]]
    else:
        shown = [_entry(entry) for entry in entries]
    rest = f"<p>and {more:,} more</p>" if more else ""
    title = f"<!doctype html><html><head><meta charset='utf-8'><title>{html.escape(name)}</title></head>"
    return f"{title}<body>{''.join(shown)}{rest}</body></html>"


def _entry(entry: Entry) -> str:
    title = html.escape(entry.title)
    if entry.link and entry.link.lower().startswith(("http://", "https://")):
        title = f'<a href="{html.escape(entry.link)}">{title}</a>'
    summary = f"<p>{html.escape(entry.summary)}</p>" if entry.summary and entry.summary != entry.title else ""
    return f"<h3>{title}</h3>{summary}"
