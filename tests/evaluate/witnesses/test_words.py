"""Words of a batch of texts: the kernel finds what the algebra says a word is, and hashes are the same without it."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fishweir.algebra.texts import words
from fishweir.evaluate.witnesses.path_tables import hash_texts
from fishweir.evaluate.witnesses.words import words_of

TEXTS = st.lists(st.text("abAB_09 .'-\nÄäßİ", max_size=40), max_size=20)


@given(TEXTS, st.integers(0, 3))
def test_words_are_those_of_the_algebra(texts: list[str], skipped: int) -> None:
    given = pa.array(texts, pa.large_string()).slice(skipped)
    rows, found, hashes = words_of(given)
    assert (np.diff(rows) >= 0).all()
    pairs = list(zip(rows.tolist(), found.to_pylist(), strict=True))
    assert sorted(pairs) == sorted((row, word) for row, t in enumerate(given.to_pylist()) for word in {"", *words(t)})
    assert hashes.tolist() == hash_texts(pa.array(found.to_pylist(), pa.large_string())).tolist()


def test_hashes_are_the_same_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array(["", "a", "ab", "ba", "Straße", "x" * 300], pa.large_string())
    compiled = hash_texts(texts).tolist()
    monkeypatch.delitem(sys.modules, "numba")
    assert hash_texts(texts).tolist() == compiled
    assert len(set(compiled)) == len(texts)
