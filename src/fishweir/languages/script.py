"""Scripts of statements in any language: splits them, recognizes the language by the first words, and parses.

In: the text of a script. Out: statements. A new language adds one row to LANGUAGES (how its queries start, and their
parser) and, if it has other statements, one to STATEMENTS.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from importlib import import_module

from fishweir.algebra.feeds import CreateFeed, FeedQuery
from fishweir.algebra.nodes import CreateStream, DropQueries, DropQuery, Statement
from fishweir.languages.lexical import GAP, NAME, OPENING_QUOTES, QUOTED, unquote
from fishweir.languages.parsed import AnyParsed, ParsedQuery, all_items, split_distinct, to_statement
from fishweir.languages.series import Series, SeriesReader
from fishweir.languages.skeleton import SkeletonCache
from fishweir.languages.statement_text import Rejected, ScriptPieces, StatementText
from fishweir.languages.subscriptions import SHARED, AnySubscription
from fishweir.records import dataclass

FEWEST_PATHS = 63
"""Scripts with fewer semicolons have too few paths to store them together, and need not load the scanner."""
_GAPS = re.compile(rf"{GAP}*+")
_NAME = re.compile(rf"{NAME}|{QUOTED}")
_FLAGS = re.IGNORECASE | re.DOTALL
_LIKE = re.compile(rf"{GAP}*+where{GAP}++name{GAP}++like(?![\w.-])", _FLAGS)


def _words(*words: str) -> str:
    """A pattern for keywords, separated by any space and comments."""
    return rf"{GAP}++".join(words) + r"(?![\w.-])"


_STREAM, _FEED = (re.compile(_words("create", word), _FLAGS) for word in ("stream", "feed"))
_NAMED, _USING, _AS = (re.compile(_words(*words), _FLAGS) for words in (("create", "query"), ("using",), ("as",)))
_REPLACE = re.compile(_words("create", "or", "replace", "feed"), _FLAGS)
_DROP = re.compile(rf"{_words('drop', 'query')}|{_words('(?:delete|drop)')}", _FLAGS)


@dataclass(frozen=True, slots=True)
class Language:
    """A query language: how its queries begin and its parser."""

    name: str
    begins: str
    parse: Callable[[StatementText], AnyParsed]


def _lazy_parser(language: str) -> Callable[[StatementText], AnyParsed]:
    """The parser of a language, loaded with the first query in it."""

    def parse(piece: StatementText) -> AnyParsed:
        parsed: AnyParsed = import_module(f"fishweir.languages.{language}.language").parse_query(piece)
        return parsed

    return parse


_SOURCE = rf"(?:[^\W\d](?:[\w.]|-(?![->]))*+|{QUOTED})"
_OPEN = r"(?:\(\s*+)*+"
_LIST = rf"(?:\*|\$?{NAME}(?:\s*,\s*\$?{NAME})*)"
_XSCL = (
    rf"(?:(?:select\b(?:[^'\"“”]|{QUOTED})*?\b)?from{GAP}++|select\s+{_LIST}\s+)?"
    rf"{_OPEN}{_SOURCE}\s*(?:/(?:[/@*{{]|[^\W\d])|->|→|(?:as\s+\S+\s+)?(?:join|(?:not\s+)?followed\s+by)\s*\{{)"
    rf"|(?:from{GAP}++|select\s+{_LIST}\s+(?!from\b)){_SOURCE}\s+(?:as\s+\S+\s+)?publish\b"
    rf"|select\s+\$?(?P<whole>{NAME})\s+from{GAP}++{_SOURCE}\s+as\s+(?P=whole)\s+publish\b"
    rf"|select\s*<|{_words('with', 'namespace')}"
    rf"|{_OPEN}(?!(?:select|from|where|with|for|let)\b){_SOURCE}(?:{GAP}++as\s+\S+)?{GAP}*+"
    rf"(?:\Z|[/\[]|(?:as|join|not|followed|distinct|publish|pref|do|start|every|expire)\b)"
)
"""A stream's name, followed by a path, a variable or a join, or alone, for all its documents. In SQL, no `/` follows
the name of a relation. A select list over a stream without a path is SQL, unless it is the variable of the whole
document.
"""

LANGUAGES: tuple[Language, ...] = (
    Language("NiagaraCQ", _words("where"), _lazy_parser("niagaracq")),
    Language("XSCL", _XSCL, _lazy_parser("xscl")),
    Language("XQuery", rf"for{GAP}++\$", _lazy_parser("xquery")),
    Language("RoSeS", r"from\b", _lazy_parser("roses")),
    Language("SQL", r"(?:select|with)\b", _lazy_parser("sql")),
)


@dataclass(frozen=True, slots=True)
class Context:
    """The input for parsing a statement in addition to its text."""

    line: int
    now: float
    cache: SkeletonCache
    earlier: list[Statement] = field(default_factory=list)
    """Statements that precede the parsed one: the joins of a chain before its last one."""


def _create_stream(piece: StatementText, context: Context) -> Statement:
    keywords = _STREAM.match(piece.text)
    assert keywords is not None
    name, _ = _take_name(piece, keywords.end(), "the stream's name")
    named = piece.rest(0, f"stream {name}")
    from fishweir.languages.streams import language as streams

    return _placed(named, lambda: CreateStream(streams.parse_stream(named), piece.text, context.line))


def _create_query(piece: StatementText, context: Context) -> Statement:
    """`create NAME where ...`: the NiagaraCQ command."""
    name, body = _take_name(piece, len("create"), "the query's name")
    return _query(piece, body, name, LANGUAGES[0], context)


def _create_named(piece: StatementText, context: Context) -> Statement:
    """`create query NAME [using LANGUAGE] as ...`."""
    keywords = _NAMED.match(piece.text)
    assert keywords is not None
    name, at = _take_name(piece, keywords.end(), "the query's name")
    language, named = None, piece.rest(0, f"query {name}")
    using = _USING.match(piece.text, at)
    if using:
        word, after = _take_name(named, using.end(), "a language")
        language, at = _language(named, word, _skip(piece.text, using.end())), after
    keyword = _AS.match(piece.text, at)
    if not keyword:
        expected = "'as'" if using else "'as' or 'using'"
        raise named.error(Rejected(f"expected {expected} and the query's text", at, syntax=True))
    body = _skip(piece.text, keyword.end())
    return _query(piece, body, name, language or _recognize(named, body), context)


def _delete(piece: StatementText, context: Context) -> Statement:
    """`delete NAME`, `drop query NAME`, and either `where name like PATTERN`."""
    keywords = _DROP.match(piece.text)
    assert keywords is not None
    like = _LIKE.match(piece.text, keywords.end())
    if like:
        pattern, end = _take_name(piece, like.end(), "a pattern of names, such as 'x%'")
        if end < len(piece.text):
            raise piece.error(Rejected("expected the end of the statement", end, syntax=True))
        return DropQueries(pattern, piece.text, context.line)
    if keywords[0].lower() == "drop":
        at = _skip(piece.text, keywords.end())
        raise piece.error(Rejected("expected 'query NAME', 'feed NAME' or 'where name like ...'", at, syntax=True))
    name, end = _take_name(piece, keywords.end(), "the query's name")
    if end < len(piece.text):
        raise piece.error(Rejected("expected the end of the statement", end, syntax=True))
    return DropQuery(name, piece.text, context.line)


def _create_feed(piece: StatementText, context: Context) -> Statement:
    """`create feed NAME from ...`, cached for similar statements, or `create or replace feed NAME from ...`."""
    replaces = _REPLACE.match(piece.text)
    keywords = replaces or _FEED.match(piece.text)
    name = _take_name(piece, keywords.end(), "the feed's name")[0] if keywords else ""
    subject = piece.rest(0, f"feed {name}") if name else piece

    from fishweir.languages.roses import language as roses

    def statement() -> Statement:
        feed, parsed = roses.parse_feed(subject)
        query = _whole(parsed, subject, all_items, context)
        if not context.earlier and not replaces:
            context.cache.keep(piece.text, query)
        worth = query.clauses.preference
        assert isinstance(query.shape, FeedQuery)
        return CreateFeed(feed, query.shape, query.constants, piece.text, context.line, bool(replaces), worth)

    return _placed(subject, statement)


def _feed_statement(piece: StatementText, context: Context) -> Statement:
    """`register feed`, `drop feed` and `subscribe to`."""
    from fishweir.languages.roses import language as roses

    statement = _placed(piece, lambda: roses.parse_statement(piece, context.line, context.now))
    if isinstance(statement, AnySubscription):
        parse = roses.parse_statement
        SHARED.keep(statement, context.now, lambda text, now: parse(StatementText(text, 0, len(text)), 1, now))
    return statement


STATEMENTS: tuple[tuple[str, Callable[[StatementText, Context], Statement]], ...] = (
    (_words("create", "stream"), _create_stream),
    (_words("create", "feed"), _create_feed),
    (_words("create", "or", "replace"), _create_feed),
    (rf"{_words('(?:register|drop)', 'feed')}|{_words('(?:un)?subscribe')}", _feed_statement),
    (_words("create", "query"), _create_named),
    (_words("create"), _create_query),
    (_words("(?:delete|drop)"), _delete),
)
_STATEMENTS = tuple((re.compile(begins, _FLAGS), parse) for begins, parse in STATEMENTS)
_BEGINS = tuple((re.compile(language.begins, _FLAGS), language) for language in LANGUAGES)
_EXPECTED = "'create stream NAME', 'create NAME where ...', 'create query NAME as ...' or 'delete NAME'"
_CACHE = SkeletonCache()


def parse_script(text: str, now: float | None = None, cache: SkeletonCache | None = None) -> list[Statement]:
    """The statements of a script in order; times such as `3 months` are relative to `now`.

    Raises QuerySyntaxError or QueryError with line, column and a caret in the whole script.
    """
    reader = _Reader(time.time() if now is None else now, _CACHE if cache is None else cache)
    return [statement for piece in ScriptPieces(text) for statement in reader.read(piece)]


def parse_for_storage(text: str, now: float, cache: SkeletonCache | None = None) -> list[Statement | Series]:
    """The same as `parse_script`, but many statements that differ only in names and constants are read together
    (series.py), and queries that are a single path have it as a constant (algebra/path_queries.py)."""
    reader = _Reader(now, _CACHE if cache is None else cache, paths=text.count(";") >= FEWEST_PATHS)
    found: list[Statement | Series] = []
    pieces, series = ScriptPieces(text), SeriesReader(reader.cache)
    for piece in pieces:
        found += (some := reader.read(piece))
        for queries, end in series.behind(piece, some[-1], pieces.position):
            found.append(queries)
            pieces.position = end
    return found


class _Reader:
    """Reads the statements of a script in order."""

    def __init__(self, now: float, cache: SkeletonCache, paths: bool = False) -> None:
        self.now, self.cache = now, cache
        self.line, self.counted = 1, 0
        self.scan: Callable[[str, int, float], Statement | None] | None = None
        if paths:
            from fishweir.languages.xscl.plain import scan_statement

            self.scan = scan_statement

    def read(self, piece: StatementText) -> Sequence[Statement]:
        """The statement of a piece, after those that it needs."""
        text, now = piece.text, self.now
        self.line += piece.script.count("\n", self.counted, piece.start)
        self.counted, line = piece.start, self.line
        scanned = self.scan(text, line, now) if self.scan else None
        statement = scanned or SHARED.find(text, line, now) or self.cache.find(text, line, now)
        if statement is not None:
            return (statement,)
        context = Context(line, now, self.cache)
        last = _parse(piece, context)
        return (*context.earlier, last)


def _parse(piece: StatementText, context: Context) -> Statement:
    """Parses one statement in full."""
    for begins, parse in _STATEMENTS:
        if begins.match(piece.text):
            return parse(piece, context)
    return _query(piece, 0, None, _recognize(piece, 0), context)


def _query(piece: StatementText, at: int, name: str | None, language: Language, context: Context) -> Statement:
    """The query whose text begins at an offset of the statement; cached for similar queries."""
    body = piece.rest(at, f"query {name}" if name else "")

    def statement() -> Statement:
        everything = _all_rows if language.name == "SQL" else all_items
        query = _whole(language.parse(body), body, everything, context)
        created = to_statement(query, name, piece.text, context.line, context.now)
        if context.earlier:
            return created
        moved = replace(query, places=tuple(p.moved(at) for p in query.places)) if query.places else query  # type: ignore[arg-type]
        context.cache.keep(piece.text, moved, lambda text: _whole_alone(language, text[at:], everything))
        return created

    return _placed(body, statement)


def _whole_alone(language: Language, text: str, everything: Callable[[str], AnyParsed]) -> AnyParsed:
    """The query of a text that is not part of a script."""
    piece = StatementText(text, 0, len(text))
    return split_distinct(language.parse(piece), text, everything)[-1]


def _whole(
    query: AnyParsed, piece: StatementText, everything: Callable[[str], AnyParsed], context: Context
) -> AnyParsed:
    """The query with its `distinct on`. The queries that it reads are added as earlier statements."""
    text = piece.text[: query.clauses.distinct_at].rstrip()
    *earlier, last = split_distinct(query, text, everything)
    for one in earlier:
        own = one.text if isinstance(one, ParsedQuery) and one.text else text
        context.earlier.append(replace(to_statement(one, None, own, context.line, context.now), derived=True))
    return last


def _all_rows(name: str) -> AnyParsed:
    """The tuples of a stream, as SQL reads them."""
    text = f'select * from "{name}"'
    return LANGUAGES[-1].parse(StatementText(text, 0, len(text)))


def _placed(piece: StatementText, parse: Callable[[], Statement]) -> Statement:
    try:
        return parse()
    except Rejected as rejected:
        raise piece.error(rejected) from None
    except RecursionError:
        raise piece.error(Rejected("the query is nested too deeply", 0)) from None


def _recognize(piece: StatementText, at: int) -> Language:
    for begins, language in _BEGINS:
        if begins.match(piece.text, at):
            return language
    expected = "a query, such as 'where <...> in ... construct ...'" if at else _EXPECTED
    raise piece.error(Rejected(f"expected {expected}", at, syntax=True))


def _language(piece: StatementText, word: str, at: int) -> Language:
    for language in LANGUAGES:
        if language.name.lower() == word.lower():
            return language
    names = ", ".join(language.name.lower() for language in LANGUAGES)
    raise piece.error(Rejected(f"'{word}' is not a language: expected {names}", at))


def _take_name(piece: StatementText, at: int, what: str) -> tuple[str, int]:
    """The name after an offset, and the offset of the next word."""
    start = _skip(piece.text, at)
    match = _NAME.match(piece.text, start)
    if match is None:
        raise piece.error(Rejected(f"expected {what}", start, syntax=True))
    name = unquote(match[0]) if match[0][0] in OPENING_QUOTES else match[0]
    if not name.strip():
        raise piece.error(Rejected(f"expected {what}, found an empty text", start, syntax=True))
    return name, _skip(piece.text, match.end())


def _skip(text: str, at: int) -> int:
    match = _GAPS.match(text, at)
    return match.end() if match else at


def shared_cache() -> SkeletonCache:
    """The cache of everything that this process has parsed."""
    return _CACHE
