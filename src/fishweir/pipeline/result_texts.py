"""Results as JSON, in columns: the text is assembled for all results of a batch, without creating objects.

In: a batch of results. Out: for each result, the JSON text after its query, as `Result.to_json` writes it; None if a
batch shows something other than columns. Such a batch is written one by one (result.py).
"""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fishweir.algebra.feeds import Selection
from fishweir.algebra.nodes import Shape
from fishweir.pipeline.result import to_json_text
from fishweir.pipeline.result_batch import ResultBatch
from fishweir.pipeline.result_columns import to_record_batch
from fishweir.pipeline.text_pieces import Piece, joined, of_rows

_ESCAPED = r'["\\\x00-\x1f]'
"""Characters that JSON escapes."""


def shows_columns(batch: ResultBatch) -> bool:
    """Whether each pair of a batch is one result with named columns as output."""
    return not batch.block.cuts and all(_is_select_list(query.shape) for query in batch.kinds[1])


def _is_select_list(shape: Any) -> bool:
    if isinstance(shape, Selection):
        return shape.output is not None and not shape.joins
    return isinstance(shape, Shape) and shape.formula is not None


def rests(batch: ResultBatch) -> list[str]:
    """For each result of a batch that shows columns, its text from `"documents"` on."""
    columns = to_record_batch(batch)
    documents, times = _documents(columns.column("documents")), _times(columns.column("timestamp"))
    head, between, last = '"documents": ["', '"], "timestamp": ', ', "bindings": {}, "output": '
    outputs = _outputs(columns.column("output"))
    pieces: list[Piece] = [head, of_rows(documents), between, of_rows(times), last, of_rows(outputs), "}"]
    return joined(pieces, len(outputs)).to_pylist()  # type: ignore[no-any-return]


def _documents(ids: pa.ListArray) -> pa.StringArray:
    if pc.any(pc.match_substring_regex(ids.flatten(), _ESCAPED)).as_py():
        texts = [to_json_text(some)[2:-2] for some in ids.to_pylist()]
        return pa.array(texts, pa.string())
    return pc.binary_join(ids, '", "')


def _times(times: pa.Array) -> pa.StringArray:
    values = times.to_pylist()
    write = float.__repr__ if all(map(math.isfinite, values)) else to_json_text
    return pa.array(map(write, values), pa.string())  # type: ignore[arg-type]


def _outputs(texts: pa.StringArray) -> pa.StringArray:
    """Texts with ASCII escapes replaced by the characters that they stand for."""
    escaped = pc.match_substring(texts, "\\u")
    if not pc.any(escaped).as_py():
        return texts
    pairs = zip(texts.to_pylist(), escaped.to_pylist(), strict=True)
    return pa.array([to_json_text(json.loads(text)) if again else text for text, again in pairs], pa.string())
