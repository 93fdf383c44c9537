"""Errors of SQL: the position, the line with a caret, and what was expected or is not supported."""

# ruff: noqa: E501 (tables read better in long lines)

from __future__ import annotations

import pytest

from fishweir.errors import QueryError, QuerySyntaxError
from fishweir.languages.sql.language import parse_query
from tests.languages.cases import check_refused

CASES = [
    # statement, the place is at this text, kind, words of the message
    ("select * from R [rows 100]", "[rows", QueryError, "windows are only for joins"),
    ("select * from R, S", "R, S", QueryError, "'R' needs a window to be joined: write [range 10 seconds]"),
    ("select * from R [rows 5], S where R.x = S.x", "S where", QueryError, "'S' needs a window"),
    ("select * from R left join S on R.x = S.x", "left", QueryError, "only inner joins are supported"),
    ("select * from R [range 5] join S [range 5] using (x)", "S [range", QueryError, "'using' is not supported"),
    ("select * from R [range 5], S [range 5], T where R.x = T.x", "T where", QueryError, "'T' needs a window"),
    ("select * from R [range 5], S [range 5], R [range 6]", "R [range 6", QueryError, "'R' is read twice"),
    ("select * from R [range 5], S [range 5] join T [rows 0] on R.x = T.x", "0]", QueryError, "'0' is not a number of rows"),
    ("select R.x from R [range 5], S [range 5], T [range 5] where y = 3", "y =", QueryError, "write R.y or S.y or T.y"),
    ("select * from R [range 5], S [range 5] left join T [range 5] on R.x = T.x", "left", QueryError, "only inner joins are supported"),
    ("select * from R [range 5], R [range 6]", "R [range 6", QueryError, "'R' is read twice"),
    ("select * from R [range 5] [rows 5], S [rows 5]", "[rows 5],", QueryError, "'R' has two windows"),
    ("select * from R [rows 1.5], S [range 5]", "1.5", QueryError, "'1.5' is not a number of rows"),
    ("select * from R [rows 0], S [range 5]", "0]", QueryError, "'0' is not a number of rows"),
    ("select * from R [range 5 fortnights], S [range 5]", "5 fort", QueryError, "is not a unit of time"),
    ("select * from R [last 5], S [range 5]", "[last", QueryError, "'[last 5]' is not a window: write [range 10 seconds]"),
    ("select * from R [range], S [range 5]", "[range]", QueryError, "is not a window"),
    ("select x from R [range 5], S [range 5]", "x from", QueryError, "'x' is ambiguous in a join: write R.x or S.x"),
    ("select R.x from R [range 5], S [range 5] where y = S.x", "y =", QueryError, "write R.y or S.y"),
    ("select R.x as x, S.x as x from R [range 5], S [range 5]", "R.x as", QueryError, "the column 'x' is given twice"),
    ("select T.* from R [range 5], S [range 5]", "T.*", QueryError, "there is no stream 'T'"),
    ("select * from R [range 5, S", "", QuerySyntaxError, "expected ']'"),
    ("select count(*) from R", "count", QueryError, "aggregates are not supported"),
    ("select x, sum(y) as s from R", "sum", QueryError, "aggregates are not supported"),
    ("select lower(x) from R", "lower", QueryError, "functions are not supported"),
    ("select x + 1 from R", "x + 1", QueryError, "expected a column"),
    ("select 5 from R", "5", QueryError, "expected a column"),
    ("select distinct x from R", "distinct", QueryError, "'distinct' is not supported"),
    ("select x from R group by x", "group", QueryError, "'group by' is not supported"),
    ("select x from R where x > 5 order by x", "order", QueryError, "'order by' is not supported"),
    ("select x from R limit 5", "limit", QueryError, "'limit' is not supported"),
    ("select x from R union select x from S", "union", QueryError, "'union' is not supported"),
    ("with q as (select 5) select * from q", "with", QueryError, "'with' is not supported"),
    ("select * from (select * from R)", "select * from R", QueryError, "subqueries are not supported"),
    ("select * from R where x in (select y from S)", "select y", QueryError, "subqueries are not supported"),
    ("select * from R where sum(x) > 5", "sum", QueryError, "aggregates are not supported"),
    ("select * from R where upper(x) = 'A'", "upper", QueryError, "functions are not supported"),
    ("select * from R where y = 1 and x + 1 > 5", "x + 1", QueryError, "arithmetic is not supported"),
    ("select * from R where x", "x", QueryError, "expected a condition"),
    ("select * from R where (x > 5) < 6", "x > 5", QueryError, "expected a column or a constant"),
    ("select * from R where 1 = 1", "1 = 1", QueryError, "two constants"),
    ("select * from R where x like y", "y", QueryError, "expected quoted text after 'like'"),
    ("select * from R where 5 like 'y'", "5", QueryError, "expected a column before 'like'"),
    ("select * from R where x ilike 5", "5", QueryError, "expected quoted text after 'ilike'"),
    ("select * from R where x contains y", "y", QueryError, "expected quoted text after 'contains'"),
    ("select * from R where 5 not contains 'y'", "5", QueryError, "expected a column before 'contains'"),
    ("select * from R where x contains '--'", "'--'", QueryError, "does not contain a word"),
    ("select * from R where x references ' '", "' '", QueryError, "is neither a URL nor a host"),
    ("select * from R where x contains(0.5) 'y'", "0.5", QueryError, "'contains' does not take a share of words"),
    ("select * from R where x similar(2) 'y'", "2", QueryError, "a number above 0, at most 1"),
    ("select * from R where x resembles 'y'", "resembles", QuerySyntaxError, "expected a comparison"),
    ("select * from R where x glob 'y'", "x glob", QueryError, "expected a condition"),
    ("select * from R where x like 'y' escape '!'", "x like", QueryError, "'escape' is not supported"),
    ("select * from R where x is not distinct from 5", "distinct", QueryError, "'distinct' is not supported"),
    ("select * from R where x between symmetric 1 and 2", "x between", QueryError, "expected a condition"),
    ("select * from R where x = any(5)", "5", QueryError, "expected a column or a constant"),
    ("select * from R where x > true", "x > true", QueryError, "no order"),
    ("select * from R where x > 1e999", "1e999", QueryError, "too large"),
    ("select * from R where t > date 'foo'", "'foo'", QueryError, "is not a date"),
    ("select * from R where x in ()", "x in", QueryError, "expected a list of constants after 'in'"),
    ("select *, x from R", "*, x", QueryError, "either '*' or columns"),
    ("select x, y, a.x from R", "a.x", QueryError, "the column 'x' is given twice"),
    ('select "/a/b" from R', '"/a/b"', QueryError, "below the document element"),
    ('select "a/@b/c" from R', '"a/@b/c"', QueryError, "is not a path"),
    ('select x as "" from R', '""', QueryError, "the column has no name"),
    ('select * from R where x > ""', '""', QueryError, "the column has no name"),
    ('select * from ""', '""', QueryError, "the source has no name"),
    ("select from R", "from", QuerySyntaxError, "expected '*' or columns, found 'from'"),
    ("select x, from R", "from", QuerySyntaxError, "expected a column, found 'from'"),
    ("select *", "", QuerySyntaxError, "expected 'from'"),
    ("select * frm R", "R", QuerySyntaxError, "expected ',' or 'from', found 'R'"),
    ("select * from", "", QuerySyntaxError, "expected the name of a stream, found the end"),
    ("select * from R where", "", QuerySyntaxError, "expected a condition, found the end of the statement"),
    ("select * from R where x >", "", QuerySyntaxError, "expected a column or a constant, found the end"),
    ("select * from R where x > and y", "and", QuerySyntaxError, "expected a column or a constant, found 'and'"),
    ("select * from R where x between 5", "", QuerySyntaxError, "expected a column or a constant, found the end"),
    ("select * from R where (x > 5", "", QuerySyntaxError, "expected ')', found the end"),
    ("select * from R where x = 5)", ")", QuerySyntaxError, "the end of the query, found ')'"),
    ("select * from R where x > 5 foo", "foo", QuerySyntaxError, "expected a comparison, 'and', 'or' or the end of the query, found 'foo'"),
    ("select * from R every 5 fortnights", "5 fort", QueryError, "is not a unit of time"),
    ("select * from R every 5 every 6", "every 6", QuerySyntaxError, "'every' is given twice"),
    ("select * from R do", "", QuerySyntaxError, "expected a name, found the end"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "place", "kind", "words"), CASES, ids=[case[0] for case in CASES])
def test_error(statement: str, place: str, kind: type[QueryError], words: str) -> None:
    check_refused("select 'é', “ü” from x", statement, place, kind, words, parse_query)
