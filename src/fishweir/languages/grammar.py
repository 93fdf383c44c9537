"""Runs a lark grammar over a piece of a script and produces readable errors.

In: a piece. Out: the result of the transformer. A text that does not parse raises a QuerySyntaxError that says what was
expected and what was found, without lark's terminal names.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import lark
from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError
from lark.lexer import PatternRE, TerminalDef

from fishweir.algebra.operators import keyword_pattern, keywords
from fishweir.languages.statement_text import Rejected, StatementText

HERE = Path(__file__).parent
_ENTITY = re.compile(r"&#?\w+\Z")
_FOUND = re.compile(r"\$?\w[\w.-]*|</?>?|\S")
_WORDS = {
    "STRING": "quoted text", "NAME": "a name", "NUMBER": "a number", "VARIABLE": "a $variable",
    "TEXT": "text", "OUT_TEXT": "text", "TAG": "a tag's name", "PLACE": "a stream's name",
    "OP": "a comparison (= != < <= > >=)",
    "COMMA": "','", "LT": "a tag '<'", "GT": "'>'", "CLOSE": "a closing tag '</>'", "EMPTY_END": "'/>'",
    "EQUALS": "'='", "LPAR": "'('", "RPAR": "')'", "WORD": "a word",
    "AMOUNT": "a number", "UNIT": "a unit of time",
    "ISO_TIME": "a date", "FROM_NOW": "'in'", "CONFORMS": "'conforms to'", "PATH": "a path", "TYPE": "a type",
    "CONDITION": "a condition such as contains", "ATTRIBUTE": "an attribute", "URL": "a URL", "DATE_PART": "'year('",
    "SLASH": "'/'", "DEEP": "'//'", "AT": "'@'", "STAR": "'*'", "DOT": "'.'", "PARENT": "'..'", "ARROW": "'->'",
    "CLARK": "'{uri}name'", "PREFIXED": "a name", "LBRACE": "'{'", "RBRACE": "'}'", "JOINED": "'followed by{', 'join{'",
    "VAR": "a variable", "SPAN": "a time such as 10 minutes", "LONE": "a time such as 10 minutes", "LONE_INF": "'inf'",
    "DISTINCT": "'distinct on'", "KEY": "a path", "LSQB": "'['", "RSQB": "']'", "BAR": "'|'",
    "AXIS": "an axis such as child::", "KIND": "text()", "FUNCTION": "a function", "ARITHMETIC": "'+'",
    "PREFERRED": "a pattern", "WORTH": "'v('", "UTILITY": "a number", "COMPARED": "a comparison (= != < <= > >=)",
    "MORE": "'...'", "HAVING": "'['", "HAD": "']'",
    "NAMESPACE": "'with namespace'", "OPTIONAL": "'?'", "NOT": "'not('",
    "$END": "the end of the statement",
}  # fmt: skip
_IGNORED = {"WS", "COMMENT", "XML_COMMENT"}


class Grammar:
    """A grammar file below this folder with the transformer for its trees; built on first use, and again after a new
    condition is registered.
    """

    def __init__(self, file: str, transformer: Transformer[Token, Any]) -> None:
        self._file, self._transformer = file, transformer

    @property
    def lark(self) -> Lark:
        return _build(self._file, keywords())

    def parse(self, piece: StatementText) -> Any:
        """The transformed tree of the piece. Raises Rejected if it does not parse."""
        try:
            return self._transformer.transform(self.lark.parse(piece.text))
        except UnexpectedInput as error:
            raise unexpected(error, piece.text) from None
        except VisitError as error:
            if isinstance(error.orig_exc, Rejected):
                raise error.orig_exc from None
            raise


@lru_cache(maxsize=16)
def _build(file: str, words: tuple[str, ...]) -> Lark:
    """The parser of a grammar with these conditions: generated once, then cached next to the compiled modules."""
    cached = HERE / "__pycache__" / f"{Path(file).stem}.{_digest(file, words)}.grammar"
    try:
        with cached.open("rb") as stored:
            loaded: Lark = Lark.load(stored)
            return loaded
    except (OSError, EOFError, UnpicklingError):
        built = _analysed(file, words)
    try:
        cached.parent.mkdir(exist_ok=True)
        temporary = cached.with_suffix(f".{os.getpid()}.tmp")
        with temporary.open("wb") as stored:
            built.save(stored)
        temporary.replace(cached)
    except OSError:
        pass  # a read-only installation: each process generates it
    return built


def _digest(file: str, words: tuple[str, ...]) -> str:
    """A digest that changes with the grammar, the conditions, lark and Python."""
    texts = [(HERE / name).read_text() for name in (file, "schedule.lark", "terminals.lark")]
    return sha256(repr((texts, words, lark.__version__, sys.version_info)).encode()).hexdigest()[:16]


def _analysed(file: str, words: tuple[str, ...]) -> Lark:
    return Lark.open(
        str(HERE / file),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        import_paths=[str(HERE)],
        edit_terminals=partial(_with_conditions, words),
    )


def _with_conditions(words: tuple[str, ...], terminal: TerminalDef) -> None:
    """Extends the terminal CONDITION of a grammar to all registered keywords; before a comparison, they are names."""
    if terminal.name == "CONDITION":
        terminal.pattern = PatternRE(rf"(?:{keyword_pattern(words)})(?![\w.-])(?!\s*[=<>!])", ("i",))


def unexpected(error: UnexpectedInput, text: str) -> Rejected:
    """The error position, what was expected there and what was found."""
    at: int = len(text)
    expected: set[str] = set()
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        if error.token.type != "$END" and error.token.start_pos is not None:
            at = error.token.start_pos
    elif isinstance(error, UnexpectedCharacters):
        at, expected = error.pos_in_stream or 0, set(error.allowed or ())
    found = _FOUND.match(text, at)
    shown = f"'{found[0]}'" if found else "the end of the statement"
    if _ENTITY.search(text, 0, at):
        shown += ": ';' ends the statement; write '&' instead of '&amp;'"
    return Rejected(f"expected {alternatives(expected)}, found {shown}", at, syntax=True)


def alternatives(terminals: Iterable[str]) -> str:
    """`'in', 'element_as' or a tag '<'` for a set of terminal names."""
    names = {name.rpartition("__")[2].lstrip("_") for name in terminals} - _IGNORED
    words = sorted({_WORDS.get(name, f"'{name.lower()}'") for name in names}, key=lambda w: (w[0] != "'", w))
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
