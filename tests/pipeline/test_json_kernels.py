"""JSON texts from the compiled kernel equal those of `json.dumps`."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fishweir.pipeline.json_kernels import json_strings

TEXTS = st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=8), max_size=20)


@given(TEXTS, st.integers(0, 3))
def test_texts_match_json_dumps(texts: list[str | None], start: int) -> None:
    found = json_strings(pa.array(texts, pa.string()).slice(start))
    found.validate(full=True)
    assert found.to_pylist() == [json.dumps(text) for text in texts[start:]]


def test_every_character_of_the_basic_plane() -> None:
    every = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    assert json_strings(pa.array(every)).to_pylist() == [json.dumps(text) for text in every]
