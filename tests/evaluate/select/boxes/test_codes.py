"""The order-preserving code of strings."""

from __future__ import annotations

import operator

import numpy as np
import pyarrow as pa
from hypothesis import given

from fishweir.evaluate.select.boxes import StringCodes
from tests import strategies as st

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=3)


@given(st.lists(texts, max_size=5), st.lists(texts, min_size=1, max_size=5))
def test_comparisons_with_constants_have_the_same_outcome(constants: list[str], values: list[str]) -> None:
    codes = StringCodes(constants)
    encoded = codes.encode(list(values))
    for constant in constants:
        for value, code in zip(values, encoded, strict=True):
            for compare in (operator.lt, operator.le, operator.eq, operator.ge, operator.gt):
                assert compare(value, constant) == compare(code, codes.code(constant))


def test_forms_of_columns() -> None:
    codes = StringCodes(["b", "d"])
    expected = [0.0, 1.0, np.nan, 4.0]
    column = pa.array(["a", "b", None, "e"])
    for form in (column, column.dictionary_encode(), pa.chunked_array([column[:2], column[2:]]), column.to_pylist()):
        np.testing.assert_array_equal(codes.encode(form), expected)
    assert codes.encode([]).tolist() == []
