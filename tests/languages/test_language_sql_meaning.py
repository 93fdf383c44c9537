"""Formulas have SQL's semantics, including NULLs: compared with SQLite on random conditions and tuples."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest
from hypothesis import given

from fishweir.algebra.formula import And, Atom, Formula, Not, Or
from fishweir.algebra.nodes import Constant, Slot
from fishweir.algebra.operators import find_condition
from fishweir.algebra.values import COMPARE
from fishweir.languages.lexical import quote
from fishweir.languages.sql.language import parse_query
from fishweir.languages.statement_text import StatementText
from tests import strategies as st

Value = str | float | bool | None
Both = tuple[str, str]
"""A condition in Fishweir's syntax and in SQLite's, which has no chained comparisons."""

NUMBERS, TEXTS, FLAGS = ("x", "y", "z"), ("s", "t"), ("b", "c")


def holds(formula: Formula, row: Mapping[str, Value], constants: tuple[Constant, ...]) -> bool:
    """The naive evaluator: two-valued, an atom on NULL is false."""
    match formula:
        case And(parts):
            return all(holds(part, row, constants) for part in parts)
        case Or(parts):
            return any(holds(part, row, constants) for part in parts)
        case Not(part):
            return not holds(part, row, constants)
    return atom_holds(formula, row, constants)


def atom_holds(atom: Atom, row: Mapping[str, Value], constants: tuple[Constant, ...]) -> bool:
    left = _plain(row[atom.path[0].name])
    if left is None or atom.right is None:
        return left is not None
    right = constants[atom.right.index] if isinstance(atom.right, Slot) else _plain(row[atom.right[0].name])
    condition = find_condition(atom.op)
    if condition is not None:
        return condition.meaning(str(left), str(right))
    return right is not None and COMPARE[atom.op](left, right)  # type: ignore[index]


def _plain(value: Value) -> str | float | None:
    return ("true" if value else "false") if isinstance(value, bool) else value


numbers = st.integers(-3, 3)
words = st.text(alphabet="aAb'%", max_size=3)
patterns = st.text(alphabet="aAb_%'", max_size=3).map(quote)
flags = st.sampled_from(["true", "false"])
operators = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="])
equality = st.sampled_from(["=", "<>"])


@st.composite
def comparisons(draw: st.DrawFn) -> Both:
    columns, constants, ops = draw(
        st.sampled_from(
            [(NUMBERS, numbers.map(str), operators), (TEXTS, words.map(quote), operators), (FLAGS, flags, equality)]
        )
    )
    column = st.sampled_from(columns)
    other = column | constants | st.just("null")
    kind = draw(st.sampled_from(["plain", "mirrored", "between", "in", "is", "like", "chain"]))
    left, no = draw(column), draw(st.sampled_from(["", "not "]))
    if kind == "plain":
        text = f"{left} {draw(ops)} {draw(other)}"
    elif kind == "mirrored":
        text = f"{draw(other)} {draw(ops)} {left}"
    elif kind == "between" and columns != FLAGS:
        text = f"{left} {no}between {draw(other)} and {draw(other)}"
    elif kind == "in":
        text = f"{left} {no}in ({', '.join(draw(st.lists(other, min_size=1, max_size=3)))})"
    elif kind == "like":
        text = f"{draw(st.sampled_from(TEXTS))} {no}like {draw(patterns)}"
    elif kind == "chain":
        middle, first, second = draw(column), draw(ops), draw(ops)
        a, b = draw(other), draw(other)
        return f"{a} {first} {middle} {second} {b}", f"({a} {first} {middle} and {middle} {second} {b})"
    else:
        text = f"{left} is {no}{draw(flags | st.just('null')) if columns == FLAGS else 'null'}"
    return text, text


def nested(inner: st.SearchStrategy[Both]) -> st.SearchStrategy[Both]:
    def joined(a: Both, word: str, b: Both) -> Both:
        return f"({a[0]} {word} {b[0]})", f"({a[1]} {word} {b[1]})"

    negated = inner.map(lambda a: (f"not ({a[0]})", f"not ({a[1]})"))
    return negated | st.builds(joined, inner, st.sampled_from(["and", "or"]), inner)


conditions = st.recursive(comparisons(), nested, max_leaves=6)
rows = st.fixed_dictionaries(
    dict.fromkeys(NUMBERS, st.none() | numbers)
    | dict.fromkeys(TEXTS, st.none() | words)
    | dict.fromkeys(FLAGS, st.none() | st.booleans())
)


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("pragma case_sensitive_like = on")
        connection.execute("create table R (i int, x int, y int, z int, s text, t text, b int, c int)")
        yield connection


@st.examples(500)
@given(conditions, st.lists(rows, min_size=1, max_size=8))
def test_conditions_agree_with_sqlite(
    database: sqlite3.Connection, condition: Both, data: list[dict[str, Value]]
) -> None:
    text = f"select * from R where {condition[0]}"
    query = parse_query(StatementText(text, 0, len(text)))
    formula = query.shape.filters[0].formula
    database.execute("delete from R")
    columns = (*NUMBERS, *TEXTS, *FLAGS)
    values = [(i, *(row[column] for column in columns)) for i, row in enumerate(data)]
    database.executemany("insert into R values (?, ?, ?, ?, ?, ?, ?, ?)", values)
    expected = {i for (i,) in database.execute(f"select i from R where {condition[1]}")}
    assert {i for i, row in enumerate(data) if holds(formula, row, query.constants)} == expected
