"""Results on which a stylesheet fails: dead letters that name the result, while the rest is delivered."""

from __future__ import annotations

from pathlib import Path

import pytest

from fishweir import Result, testing
from fishweir.delivery import sending, stylesheet_pool
from fishweir.testing import Clock, Weir
from tests.delivery.servers import Hooks

SHEET = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>
<xsl:template match="/"><xsl:if test="result/x mod 3 = {bad}">
<xsl:message terminate="yes">no threes</xsl:message></xsl:if>
<xsl:value-of select="result/x"/></xsl:template></xsl:stylesheet>"""


@pytest.fixture
def sheet() -> Path:
    path = Path("x.xsl")
    path.write_text(SHEET.format(bad=0))
    return path


def mended(sheet: Path) -> None:
    sheet.write_text(SHEET.format(bad=9))


def publish(weir: Weir, *values: int) -> None:
    weir.publish("R", [{"x": value} for value in values])
    weir.step()


def test_the_rest_is_delivered_and_the_dead_letter_names_the_result(weir: Weir, hooks: Hooks) -> None:
    Path("x.xsl").write_text(SHEET.format(bad=0))
    weir.execute(
        f"subscribe to big apply 'x.xsl' output file 'f'; subscribe to big apply 'x.xsl' output http '{hooks.url}'"
    )
    publish(weir, 6, 7, 8)
    publish(weir, 9, 10)
    assert Path("f").read_text().split() == ["7", "8", "10"]
    assert [result["output"] for one in hooks.taken for result in one.results] == ["7", "8", "10"]
    letters = weir.dead_letters()
    assert {(letter.feeds, letter.action.split()[0]) for letter in letters} == {(("big",), "file"), (("big",), "http")}
    documents = {tuple(result.documents): result.output["x"] for result in weir.results("big")}  # type: ignore[index]
    named = sorted(
        str(letter.error).removeprefix("big, ").partition(": the stylesheet x.xsl fails: ") for letter in letters
    )
    assert [documents[document,] for document, _, _ in named] == [6, 6, 9, 9]
    assert all("no threes" in reason for _, _, reason in named)


def test_a_dead_letter_is_resent_individually(weir: Weir, sheet: Path) -> None:
    weir.execute("subscribe to big apply 'x.xsl' output file 'f'")
    publish(weir, 6, 7, 8, 9)
    first, second = weir.dead_letters()
    assert weir.resend() == 2
    weir.step()
    assert [letter.id for letter in weir.dead_letters()] == [first.id, second.id], "it fails on them again"
    mended(sheet)
    assert weir.resend([second.id]) == 1
    weir.step()
    assert Path("f").read_text().split() == ["7", "8", "9"]
    weir.resend()
    weir.step()
    assert Path("f").read_text().split() == ["7", "8", "9", "6"]
    assert weir.letters() == []


def test_dead_letters_survive_a_restart(tmp_path: Path, weir: Weir, sheet: Path, clock: Clock) -> None:
    weir.execute("subscribe to big apply 'x.xsl' output file 'f'")
    publish(weir, 6, 7)
    weir.close()
    mended(sheet)
    with testing.open(tmp_path / "home", clock=clock) as again:
        assert len(again.dead_letters()) == 1
        again.resend()
        again.step()
    assert Path("f").read_text().split() == ["7", "6"]


def test_many_payloads_and_a_target_that_fails_in_between(
    weir: Weir, sheet: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rejected result gets one letter, though deliveries are repeated, and no result is sent twice."""
    monkeypatch.setattr(sending, "RESULTS_PER_PAYLOAD", 4)
    calls: list[str] = []
    failures = iter([3, 5, 8])
    failing = [next(failures)]

    def act(result: Result) -> None:
        if failing[0] == len(calls):
            failing[0] = next(failures, -1)
            raise OSError("not now")
        calls.append(str(result.output).strip())

    weir.action("act", act)
    weir.execute("subscribe to big apply 'x.xsl' output act")
    values = range(6, 26)
    publish(weir, *values)
    while weir.letters() != weir.dead_letters():
        clock.advance(3600)
        weir.step()
    assert calls == [str(value) for value in values if value % 3]
    assert len(weir.dead_letters()) == len([value for value in values if value % 3 == 0])
    mended(sheet)
    weir.resend()
    weir.step()
    assert sorted(map(int, calls)) == list(values)


SLOW = """<xsl:if test="result/x mod 3 = 0"><xsl:call-template name="f"><xsl:with-param name="n" select="60"/>
</xsl:call-template></xsl:if><xsl:value-of select="result/x"/></xsl:template>
<xsl:template name="f"><xsl:param name="n"/><xsl:if test="$n > 0">
<xsl:call-template name="f"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>
<xsl:call-template name="f"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template></xsl:if>"""


def test_a_result_that_takes_too_long_does_not_block_the_others_forever(
    weir: Weir, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stylesheet_pool, "ITEM_TIMEOUT", 0.5)
    begin, _, _ = SHEET.partition("<xsl:if")
    Path("x.xsl").write_text(f"{begin}{SLOW}</xsl:template></xsl:stylesheet>")
    weir.execute("subscribe to big apply 'x.xsl' output file 'f'")
    publish(weir, 7, 9, 10)
    assert not Path("f").exists()
    for _ in range(sending.SLOW_ATTEMPTS - 1):
        clock.advance(3600)
        weir.step()
    assert Path("f").read_text().split() == ["7", "10"]
    (letter,) = weir.dead_letters()
    assert "exceeded the limit of 0.5 s" in str(letter.error)
