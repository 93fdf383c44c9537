"""Outputs that are written straight to their columns equal those constructed one by one from the tree of libxml2."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from fishweir import testing
from fishweir.pipeline import bound_columns, results
from fishweir.pipeline.block import Block
from fishweir.pipeline.result_columns import to_record_batch, to_table

ITEMS = [
    "<i><t>plain</t><l>x</l></i>",
    '<i>\n <t>&amp; &lt;a&gt; "q"</t><l/></i>',
    "<i><t>'both' \"q\"\n\t&#13;</t><l><b/></l><!-- c --></i>",
    "<i><t><![CDATA[<p>&]]></t><l>é€𝄞</l></i>",
    "<i><t><![CDATA[]]></t><l>empty section</l></i>",
    "<i><?pi x?><t>p</t><l>instruction</l></i>",
    "<i><t>p</t><l><?pi x?></l></i>",
    "<!DOCTYPE i [<!ENTITY e 'entity'>]><i><t>&e;</t><l>dtd</l></i>",
    '<?xml version="1.0" encoding="ISO-8859-1"?><i><t>latin</t><l>1</l></i>',
    "<i xmlns:p='urn:p'><t p:k='1'>n</t><l xmlns:q='urn:q'><p:b/><q:b/></l></i>",
    "<i k='&quot;\t'><t k=\"'\">a</t><l  k='1' >b</l ></i>",
    "<x><i><t>1</t><l>2</l></i><i><t>3</t><l>4</l><l>5</l></i></x>",
    "<i><t></t><l>no title</l></i>",
]
PATTERN = "D//i->i[./t->t][./l->l]"
XML_QL = 'where <i><t>$t</> <l>$l</></> in "D" construct'
QUERIES = {
    "default": f"create query default as {PATTERN}",
    "element": f"create query element as select <hit by=$t>{{l}}{{i}}</hit> from {PATTERN}",
    "nested": f"create query nested as select <hit a='1' by=$t b=$l>x<in><t>{{i}}</t></in><none/></hit> from {PATTERN}",
    "no_content": f"create query no_content as select <hit by=$t/> from {PATTERN}",
    "content": f"create content {XML_QL} <hit l=$l><t>$t 'x'</t></hit>",
    "maybe_content": f"create maybe_content {XML_QL} <hit>$t</hit>",
    "attribute": "create query attribute as select <hit by=$k>{l}</hit> from D//i->i[./@k->k][./l->l]",
    "optional": "create query optional as select <hit>{i}{n}</hit> from D//i->i[./n->n]?[./l->l]",
}
JOINED = {"maybe_content", "attribute", "optional"}
"""Queries whose results are joined from pieces."""


@pytest.fixture
def filled(weir: testing.Weir) -> testing.Weir:
    weir.execute("create stream D")
    for statement in QUERIES.values():
        weir.execute(statement)
    for _ in range(3):
        weir.publish("D", ITEMS)
        weir.step()
    return weir


@pytest.mark.parametrize("at_once", [results.PAIRS_AT_ONCE, 7])
def test_columns_match_results_one_by_one(filled: testing.Weir, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Several blocks are constructed in several threads."""
    monkeypatch.setattr(results, "PAIRS_AT_ONCE", at_once)
    monkeypatch.setattr(results, "FEW", min(results.FEW, at_once))
    found = filled.results().to_arrow()
    found.validate(full=True)
    assert found.equals(to_table(filled.results()))
    assert set(found.column("query").to_pylist()) == set(QUERIES)


def test_most_outputs_are_written_straight(filled: testing.Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []

    def noted(*arguments: Any) -> Any:
        written.append(written_rows(*arguments))
        return written[-1]

    written_rows = bound_columns.written_rows
    monkeypatch.setattr(bound_columns, "written_rows", noted)
    for name in QUERIES:
        written.clear()
        filled.results(name).to_arrow()
        assert any(rows is not None for rows in written) == (name not in JOINED), name


def test_blocks_are_freed_at_once(filled: testing.Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the garbage collector, which would run much later."""
    blocks: list[weakref.ref[Block]] = []

    def columns() -> Iterator[pa.RecordBatch]:
        for batch in filled._reader.batches(filled.table, filled.table.commits()):
            blocks.append(weakref.ref(batch.block))
            yield to_record_batch(batch)

    gc.collect()
    gc.disable()
    try:
        assert sum(one.num_rows for one in columns()) > 0
        assert blocks
        assert [block() for block in blocks] == [None] * len(blocks)
    finally:
        gc.enable()
