"""`mail` and NiagaraCQ's `MailTo`: digests to a real mail server, encrypted, retried, unsubscribed with one click."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path

import pytest
import trustme
from aiosmtpd.smtp import AuthResult

from fishweir.delivery.outbox import MAX_GATHERING_TIME
from fishweir.shedding.overload import Overload
from fishweir.testing import Clock, Weir
from tests.delivery.servers import Mailbox, mail_server


def publish(weir: Weir, *values: int) -> None:
    weir.publish("R", [{"x": value} for value in values])
    weir.step()


def body(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


def test_a_digest_has_text_and_html_and_ends_with_one_click(weir: Weir, mailbox: Mailbox, monkeypatch) -> None:
    monkeypatch.setenv("FISHWEIR_URL", "https://weir.example.org/")
    monkeypatch.setenv("FISHWEIR_MAIL_FROM", "Fishweir <weir@example.org>")
    weir.execute("subscribe to big output mail 'me@example.org'")
    publish(weir, 1, 7, 8)
    (mail,) = mailbox.mails
    assert mailbox.recipients == ["me@example.org"]
    assert (mail["From"], mail["Subject"]) == ("Fishweir <weir@example.org>", "big: 2 results")
    assert body(mail, "plain") == "x: 7\n\nx: 8\n"
    assert "<h3>x: 7</h3>" in body(mail, "html")
    (token,) = (one.token for one in weir.catalog.subscribers("big"))
    by_click, by_mail = mail["List-Unsubscribe"].split(",")
    assert by_click.strip() == f"<https://weir.example.org/unsubscribe/{token}>"
    assert by_mail.strip() == f"<mailto:weir@example.org?subject=unsubscribe%20{token}>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    weir.unsubscribe(token)
    publish(weir, 9)
    assert len(mailbox.mails) == 1


def test_mailto_as_the_paper_writes_it(weir: Weir, mailbox: Mailbox) -> None:
    weir.execute("""
        create stream quotes;
        create intel where <Quotes><Quote><Symbol>"INTC"</> <Price>$p</></></> in "quotes", $p < 100
            construct <price>$p</price> do MailTo dewitt@cs.wisc.edu;
        create same where <Quotes><Quote><Symbol>"INTC"</> <Price>$p</></></> in "quotes", $p < 100
            construct <price>$p</price> do MailTo "niagara@cs.wisc.edu";
    """)
    weir.publish("quotes", ["<Quotes><Quote><Symbol>INTC</Symbol><Price>99</Price></Quote></Quotes>"])
    weir.step()
    assert sorted(mailbox.recipients) == ["dewitt@cs.wisc.edu", "niagara@cs.wisc.edu"]
    assert {mail["Subject"] for mail in mailbox.mails} == {"intel: 99", "same: 99"}


def test_retries_have_the_same_message_id(weir: Weir, clock: Clock, mailbox: Mailbox) -> None:
    weir.execute("subscribe to big output mail 'me@example.org'")
    mailbox.refuse = ["451 try again later", "421 busy"]
    publish(weir, 7)
    assert "451" in str(weir.letters()[0].error)
    for _ in range(3):
        clock.advance(5)
        weir.step()
    assert [mail["Subject"] for mail in mailbox.mails] == ["big: x: 7"]
    assert weir.letters() == []


def test_an_address_that_the_server_refuses_is_a_dead_letter(weir: Weir, mailbox: Mailbox) -> None:
    weir.execute("subscribe to big output mail 'nobody@example.org'")
    mailbox.refuse_recipient = "550 no such user"
    publish(weir, 7)
    (letter,) = weir.dead_letters()
    assert (letter.attempts, letter.error) == (1, "550 no such user")


def test_without_a_mail_server(weir: Weir, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FISHWEIR_SMTP", raising=False)
    weir.execute("subscribe to big output mail 'me@example.org'")
    publish(weir, 7)
    assert "FISHWEIR_SMTP is not set" in str(weir.letters()[0].error)
    with mail_server() as (box, place):
        monkeypatch.setenv("FISHWEIR_SMTP", f"smtp://{place}")
        clock.advance(1)
        weir.step()
        assert len(box.mails) == 1


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server certificate that this process trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def knows(server, session, envelope, mechanism, data) -> AuthResult:  # type: ignore[no-untyped-def]
    return AuthResult(success=data.login == b"me" and data.password == b"p@ss")


@pytest.mark.parametrize("scheme", ["smtps", "smtp"])
def test_encrypted_and_with_a_password(
    weir: Weir, certified: ssl.SSLContext, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"ssl_context": certified} if scheme == "smtps" else {"tls_context": certified, "require_starttls": True}
    with mail_server(authenticator=knows, auth_required=True, auth_require_tls=scheme == "smtp", **options) as (
        box,
        place,
    ):
        monkeypatch.setenv("FISHWEIR_SMTP", f"{scheme}://me:p%40ss@{place}")
        weir.execute("subscribe to big output mail 'me@example.org'")
        publish(weir, 7)
        assert [letter.error for letter in weir.letters()] == []
        assert len(box.mails) == 1


def test_an_untrusted_certificate_is_refused(
    weir: Weir, certified: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with mail_server(ssl_context=certified) as (box, place):
        monkeypatch.setenv("FISHWEIR_SMTP", f"smtps://{place}")
        weir.execute("subscribe to big output mail 'me@example.org'")
        publish(weir, 7)
        assert "CERTIFICATE_VERIFY_FAILED" in str(weir.letters()[0].error)
        assert box.mails == []


@dataclass
class Busy(Overload):
    """An overload in which each document takes a millisecond."""

    def took(self, documents: int, seconds: float, shed: int = 0, part: float = 1.0) -> None:
        self._costs.append(1e-3)


def test_under_overload_a_digest_instead_of_single_mails(weir: Weir, clock: Clock, mailbox: Mailbox) -> None:
    weir.execute("subscribe to big output mail 'me@example.org'")
    weir.overload = overload = Busy(5.0, shedding=True)
    overload.took(1, 1.0)
    for value in (7, 8, 9):
        weir.publish("R", [{"x": value}, *[{"x": 1}] * 4_000])  # more than four seconds: the overload continues
        weir.step()
    assert mailbox.mails == []
    weir.run(until_idle=True)
    assert not overload.shedding
    (mail,) = mailbox.mails
    assert mail["Subject"] == "big: 3 results"
    publish(weir, 10)
    assert [mail["Subject"] for mail in mailbox.mails[1:]] == ["big: x: 10"]


def test_no_mail_waits_for_the_end_of_an_overload_for_long(weir: Weir, clock: Clock, mailbox: Mailbox) -> None:
    weir.execute("subscribe to big output mail 'me@example.org'")
    weir.overload = overload = Busy(5.0, shedding=True)
    overload.took(1, 1.0)
    weir.publish("R", [{"x": 7}, *[{"x": 1}] * 4_000])
    weir.step()
    assert mailbox.mails == []
    clock.advance(MAX_GATHERING_TIME)
    overload.shedding = True
    weir.publish("R", [{"x": 8}, *[{"x": 1}] * 4_000])
    weir.step()
    assert [mail["Subject"] for mail in mailbox.mails] == ["big: 2 results"]
