"""Words of a batch of texts: the kernel agrees with the algebra, and hashes are the same without the kernel."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from fishweir.algebra.texts import contains, words
from fishweir.evaluate.index.constants import Equal
from fishweir.evaluate.index.words import Words, contain, several, sift_words, word_keys, word_shares
from fishweir.evaluate.statistics import PathStatistics
from fishweir.evaluate.witnesses.path_tables import PathTable, column_texts, hash_integers, hash_texts
from fishweir.evaluate.witnesses.words import PLANES, words_of
from tests import strategies as st

TEXTS = st.lists(st.text("abAB_09 .'-\nÄäßİΣσȺ\u212a漢٣🎉", max_size=40), max_size=20)


@given(TEXTS, st.integers(0, 3))
def test_words_agree_with_the_algebra(texts: list[str], skipped: int) -> None:
    given = pa.array(texts, pa.large_string()).slice(skipped)
    rows, found, hashes = words_of(given)
    assert (np.diff(rows) >= 0).all()
    pairs = list(zip(rows.tolist(), found.to_pylist(), strict=True))
    assert sorted(pairs) == sorted((row, word) for row, t in enumerate(given.to_pylist()) for word in {"", *words(t)})
    assert hashes.tolist() == hash_texts(pa.array(found.to_pylist(), pa.large_string())).tolist()


def test_each_character_agrees_with_the_algebra() -> None:
    texts = [f"x{chr(code)}y" for code in range(PLANES + 100) if not 0xD800 <= code < 0xE000]
    rows, found, _ = words_of(pa.array(texts, pa.large_string()))
    pairs = set(zip(rows.tolist(), found.to_pylist(), strict=True))
    assert pairs == {(row, word) for row, text in enumerate(texts) for word in {"", *words(text)}}


@given(TEXTS, st.integers(0, 3), st.booleans())
def test_constants_are_listed_by_their_longest_word(texts: list[str], skipped: int, counted: bool) -> None:
    column = pa.array(texts, pa.large_string()).slice(skipped)
    own = [words(text) for text in column.to_pylist()]
    longest = [max(some, key=lambda word: (len(word), word), default=" ") for some in own]
    assert Words.keys(column).to_pylist() == longest
    assert several(column).tolist() == [len(some) > 1 for some in own]
    known = PathStatistics(words=(("a", 3), ("b", 1)), worded=4) if counted else PathStatistics()
    rarity = {"a": 3 / 4, "b": 1 / 4}
    shares = [min((rarity.get(w, 1 / 8) if counted else 0.1 / len(w) for w in some), default=1.0) for some in own]
    assert word_shares(column, known).tolist() == shares


@given(TEXTS, st.data())
def test_contained_words_agree_with_the_algebra(texts: list[str], data: st.DataObject) -> None:
    """Parts of the texts, so that many are contained. The sieve passes all that are contained."""
    values = PathTable(np.arange(len(texts)), np.zeros((len(texts), 1), np.int64), pa.array(texts, pa.large_string()))
    part = st.sampled_from([word for text in texts for word in text.split()] or ["a"])
    constants = data.draw(st.lists(st.lists(part, max_size=2).map(" ".join), min_size=1, max_size=10))
    column = pa.array(constants, pa.large_string())
    pairs = [(row, place) for row in range(len(texts)) for place in range(len(constants))]
    rows, places = (np.array(some, np.int64) for some in zip(*pairs, strict=True)) if pairs else [np.empty(0, int)] * 2
    expected = [contains(texts[row], constants[place]) for row, place in pairs]
    assert contain(values, rows, column.take(pa.array(places))).tolist() == expected
    every, none = np.arange(len(texts)), np.zeros(len(texts), np.int64)
    source, passed = sift_words(values, every, none, none + len(constants), word_keys(column))
    assert {pair for pair, holds in zip(pairs, expected, strict=True) if holds} <= set(
        zip(source.tolist(), passed.tolist(), strict=True)
    )


@given(TEXTS, TEXTS)
def test_equal_texts_are_found(texts: list[str], constants: list[str]) -> None:
    column = pa.array(constants, pa.large_string())
    ordered = column.take(pa.array(Equal.order(column)))
    values = PathTable(np.arange(len(texts)), np.zeros((len(texts), 1), np.int64), pa.array(texts, pa.large_string()))
    row, lo, hi = Equal.build(ordered).look_up(values)
    found = {(r, at) for r, first, last in zip(row, lo, hi, strict=True) for at in range(first, last)}
    assert found == {(r, at) for r, text in enumerate(texts) for at, c in enumerate(ordered.to_pylist()) if c == text}


def test_hashes_are_the_same_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array(["", "a", "ab", "ba", "Straße", "x" * 300], pa.large_string())
    compiled = hash_texts(texts).tolist()
    monkeypatch.delitem(sys.modules, "numba")
    assert hash_texts(texts).tolist() == compiled
    assert len(set(compiled)) == len(texts)


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, -1, 10, -(2**63), 2**63 - 1]))))
def test_integers_have_the_hashes_of_their_texts(values: list[int]) -> None:
    column = pa.array(values, pa.int64())
    assert hash_integers(column).tolist() == hash_texts(column_texts(column)).tolist()
