"""create stream: definitions and errors."""

# ruff: noqa: E501 (tables read better in long lines)

from __future__ import annotations

import pytest

from fishweir.algebra.nodes import CreateStream, StreamDefinition
from fishweir.errors import QueryError
from fishweir.languages.script import parse_script


def define(text: str) -> StreamDefinition:
    (statement,) = parse_script(text)
    assert isinstance(statement, CreateStream)
    return statement.stream


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("create stream S", StreamDefinition("S")),
        ('create stream "my stream"', StreamDefinition("my stream")),
        (
            "create stream a-b.c_1 (timestamp timestamp, key bool)",
            StreamDefinition("a-b.c_1", (("timestamp", "timestamp"), ("key", "boolean"))),
        ),
        (
            "CREATE STREAM S (a Integer, b varchar(20), c real, d BIGINT) FROM 'x.JSONL' TIMESTAMP d",
            StreamDefinition(
                "S", (("a", "int"), ("b", "string"), ("c", "double"), ("d", "int")), "x.JSONL", "json", timestamp="d"
            ),
        ),
        (
            "create stream S from 'in/*' split on //item timestamp pub/@date",
            StreamDefinition("S", (), "in/*", "xml", "//item", timestamp="pub/@date"),
        ),
        (
            "create stream Q shed allowed conforms to 'q.dtd' rows /Quotes/Quote key Symbol every 5 minutes from 'quotes.xml'",
            StreamDefinition("Q", (), "quotes.xml", "xml", None, "/Quotes/Quote", "Symbol", 300.0, None, "q.dtd", True),
        ),
        ("create stream Q from 'q' rows '/Q' key '@id'", StreamDefinition("Q", (), "q", "xml", None, "/Q", "@id")),
        (
            "create stream S (a int) from 'folder' format Parquet",
            StreamDefinition("S", (("a", "int"),), "folder", "parquet"),
        ),
        (
            "create stream S (a int) from 'http://h/x.csv?y=1'",
            StreamDefinition("S", (("a", "int"),), "http://h/x.csv?y=1", "csv"),
        ),
    ],
)
def test_definition(text: str, stream: StreamDefinition) -> None:
    assert define(text) == stream


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("create stream", "", "expected the stream's name"),
        ("create stream S (a int, a int)", "a int)", "the column 'a' is given twice"),
        ("create stream S (a integ)", "integ", "'integ' is not a type: expected int, double, string"),
        ("create stream S from 'x' from 'y'", "from 'y'", "'from' is given twice"),
        ("create stream S from x", "x", "expected quoted text, found 'x'"),
        ("create stream S from 'x' format kafka", "kafka", "'kafka' is not supported by this version"),
        ("create stream S from 'ftp://x/y' format feed", "from", "expected http, https or file"),
        ("create stream S from 'http:///y' format feed", "from", "does not name a host"),
        ("create stream S (a int) from 'x' format feed", "a int", "'columns' cannot be used with it"),
        ("create stream S from 'x' format feed split on //item", "split", "'split' cannot be used with it"),
        ("create stream S from 'x.xml' every 5 s", "from", "'every' needs 'rows', format feed"),
        ("create stream S from 'x' format avro", "avro", "expected xml, csv, json, parquet"),
        ("create stream S from 'x.csv'", "from", "needs columns"),
        ("create stream S (a int) from 'x.xml'", "a int", "cannot have columns"),
        ("create stream S (a int) from 'x'", "from", "add format csv, json or parquet"),
        ("create stream S rows /a key b", "rows", "'rows' needs 'from'"),
        ("create stream S from 'x' rows /a", "rows", "'rows' needs 'key'"),
        ("create stream S from 'x' rows /a key b split on /c", "split", "cannot be combined"),
        ("create stream S (a int) split on /c", "split", "'split' is for XML"),
        ("create stream S from 'x' split on /a/@b", "/a/@b", "names an attribute"),
        ("create stream S from 'x' split on a[1]", "a[1]", "is not a path"),
        ("create stream S timestamp a[1]", "timestamp", "is not a path"),
        ("create stream S (a int) timestamp b", "timestamp", "'b' is not a column; the columns are a"),
        ("create stream S from 'x' rows /a key b every -1 s", "-1", "negative"),
        ("create stream S shed", "", "expected 'allowed', found the end of the statement"),
        ("create stream S banana", "banana", "expected '(', 'conforms to', 'from'"),
    ],
)
def test_refused(text: str, place: str, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_script(f"\n{text};")
    assert words in caught.value.reason
    assert (caught.value.line, caught.value.column) == (2, 1 + (text.rindex(place) if place else len(text)))
    assert place == "" or "stream S: " in str(caught.value)
