"""A scanner reads plain paths: it agrees with the grammar on everything that it accepts."""

import random

import pytest

from fishweir.languages.statement_text import Rejected, StatementText
from fishweir.languages.xscl.language import parse_by_grammar
from fishweir.languages.xscl.plain import scan_query

NAMES = (
    "a",
    "b-c",
    "d.e",
    "and",
    "or",
    "not",
    "mod",
    "contains",
    "text",
    "select",
    "as",
    "do",
    "é",
    "_x",
    "child",
    "inf",
)
LITERALS = (
    "'x'",
    '"y ""z"""',
    "“q”",
    "5",
    "-2.5",
    "+3e2",
    "1e999",
    "''",
    "'it''s'",
    "'a]b'",
    "'//x'",
    ".5",
    "x",
    "--1",
)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "<>", "≤", "≠")
ENDS = ("",) * 6 + (
    " do notify", " do append 'x y'", " publish p", " every 5 minutes", " expire 2 days", " pref a = 1", " as x", "->x",
    " distinct on a within 1 hour", " join {1 day} S/a", " | S/b", "-- a comment", " do", "[", "/", " x",
)  # fmt: skip
ODD = ("..", "text()", "a:b", "child::a", "{u}a", "2", "last()", "a->v", "@*", "*", ".", "a | b", "contains(a, 'x')")


def name(r: random.Random) -> str:
    if r.random() < 0.02:
        return r.choice(ODD)
    return ("@" if r.random() < 0.1 else "") + r.choice((*NAMES, "*"))


def predicate(r: random.Random) -> str:
    inner = r.choice(("//", "/")).join(name(r) for _ in range(r.choice((1, 1, 2))))
    inner = "." if r.random() < 0.15 else inner
    if r.random() < 0.2:
        return f"[{inner}]"
    gaps = [r.choice(("", " ", "  ")) for _ in range(4)]
    compared = f"{gaps[0]}{inner}{gaps[1]}{r.choice(OPERATORS)}{gaps[2]}{r.choice(LITERALS)}{gaps[3]}"
    return f"[{compared}]" if r.random() < 0.95 else f"[{compared} and b = 1]"


def query(r: random.Random) -> str:
    text = r.choice(("S", "S", "my-stream", "from", "select", "x.y"))
    for _ in range(r.randint(1, 5)):
        text += r.choice(("/", "/", "//", " /", "/ ") if r.random() < 0.05 else ("/", "//"))
        text += name(r) + "".join(predicate(r) for _ in range(r.choice((0, 0, 0, 1, 1, 2))))
    return text + r.choice(ENDS)


def test_the_scanner_agrees_with_the_grammar():
    r, accepted = random.Random(7), 0
    for _ in range(4_000):
        text = query(r)
        scanned = scan_query(StatementText(text, 0, len(text)))
        if scanned is not None:
            assert scanned == parse_by_grammar(StatementText(text, 0, len(text))), text
            accepted += 1
    assert accepted > 300


@pytest.mark.parametrize(
    "text",
    [
        "S/a", "S//a/*/@k", "S//@k", "S/a[b]", "S/a[b/c = 'x'][. != 5]/d", "S/*[@k <= -2.5]//b do append 'x'",
        "S/a every 5 minutes", 'S/a[b = "x ""y"""]', "S/and/or",
    ],
)  # fmt: skip
def test_plain_paths_need_no_grammar(text):
    assert scan_query(StatementText(text, 0, len(text))) == parse_by_grammar(StatementText(text, 0, len(text)))


@pytest.mark.parametrize("text", ["S/@a", "S/a/@*", "S/@a/b", "S/a[@b/c]", "S/a[b = 1e999]", "S/a[.]/b do"])
def test_invalid_paths_are_left_to_the_grammar(text):
    assert scan_query(StatementText(text, 0, len(text))) is None
    with pytest.raises(Rejected):
        parse_by_grammar(StatementText(text, 0, len(text)))
