"""Columns of texts joined from pieces, compared with Python's own strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fishweir.pipeline.text_pieces import (
    Piece,
    Texts,
    are_empty,
    either,
    has_any,
    interleaved,
    joined,
    numbered,
    of_rows,
)
from tests.strategies import examples

TEXTS = st.text(st.sampled_from("aé€𝄞<& "), max_size=20)


@st.composite
def rows_of_pieces(draw: st.DrawFn) -> tuple[list[Piece], list[list[str]]]:
    """Pieces, and the texts of each row. Columns are slices of longer ones, and places may be -1."""
    size, pieces, texts = draw(st.integers(0, 6)), [], []
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            text = draw(TEXTS)
            pieces.append(text)
            texts.append([text] * size)
            continue
        before, column = draw(st.lists(TEXTS, max_size=3)), draw(st.lists(TEXTS, max_size=6))
        places = draw(st.lists(st.integers(-1, len(column) - 1), min_size=size, max_size=size))
        sliced = pa.array([*before, *column, "behind"], pa.string()).slice(len(before), len(column))
        pieces.append(Texts(sliced, np.array(places, np.int64)))
        texts.append(["" if place < 0 else column[place] for place in places])
    return pieces, [list(row) for row in zip(*texts, strict=True)] if pieces else [[] for _ in range(size)]


@examples(300)
@given(rows_of_pieces())
def test_random_pieces_are_joined_like_strings(drawn: tuple[list[Piece], list[list[str]]]) -> None:
    pieces, rows = drawn
    found = joined(pieces, len(rows))
    found.validate(full=True)
    assert found.to_pylist() == ["".join(row) for row in rows]
    assert are_empty(pieces, len(rows)).tolist() == [not any(row) for row in rows]


@examples(100)
@given(rows_of_pieces())
def test_random_pieces_are_interleaved_without_those_that_are_missing(
    drawn: tuple[list[Piece], list[list[str]]],
) -> None:
    pieces, rows = drawn
    texts = [piece for piece in pieces if isinstance(piece, Texts)]
    kept = [[text for text, piece in zip(row, pieces, strict=True) if isinstance(piece, Texts)] for row in rows]
    there = np.array([[piece.places[row] >= 0 for piece in texts] for row in range(len(rows))], np.bool_)
    there = there.reshape(len(rows), len(texts))
    found = interleaved(texts, there)
    found.validate(full=True)
    flat = [text for row in kept for text in row]
    assert found.to_pylist() == [text for text, is_there in zip(flat, there.ravel(), strict=True) if is_there]


def test_either_is_one_text_for_all_rows_or_one_of_two() -> None:
    assert either("a", "b", np.zeros(2, np.bool_)) == "a"
    assert joined([either("a", "b", np.array([True, False]))], 2).to_pylist() == ["b", "a"]


def test_texts_at_missing_places_are_empty() -> None:
    texts = of_rows(pa.array(["a", "bb"], pa.string())).at(np.array([1, -1, 0]))
    assert joined([texts], 3).to_pylist() == ["bb", "", "a"]
    assert texts.lengths().tolist() == [2, 0, 1]


def test_only_the_bytes_of_a_slice_are_searched() -> None:
    marked = np.zeros(256, np.bool_)
    marked[ord("<")] = True
    column = pa.array(["<", "ab", "c", "<"], pa.string())
    assert has_any(column, marked)
    assert not has_any(column.slice(1, 2), marked)
    assert not has_any(pa.array([], pa.string()), marked)


@given(st.lists(st.integers(0, 2**62)), TEXTS)
def test_numbers_after_a_prefix(numbers: list[int], prefix: str) -> None:
    found = numbered(prefix, np.array(sorted(numbers), np.int64))
    found.validate(full=True)
    assert found.to_pylist() == [f"{prefix}{number}" for number in sorted(numbers)]
