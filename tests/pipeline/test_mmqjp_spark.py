"""MMQJP's statements on Spark SQL find the same results as the oracle."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import Source
from fishweir.papers.mmqjp.mmqjp import Mmqjp
from fishweir.pipeline.spark.mmqjp_spark import SparkEngine
from tests import strategies as st
from tests.evaluate.join.support import JOIN, documents, expected, join, node, processed, queries


@pytest.fixture
def engine(spark, tmp_path):
    made = SparkEngine(spark, tmp_path / "tables")
    yield made
    made.close()


@pytest.mark.parametrize("views", ["recomputed", "cached"])
def test_all_operators_and_both_orders(engine, views):
    times = (0.0, 1.0, 1.0, 3.0)
    bodies = ("<k>x</k><l>5</l>", "<k>x</k><l>7</l><l>no</l>", "<k></k><l>5</l>", "<k></k><k>x</k><l>10</l>")
    arrivals = [
        (Source("S"), Document(f"d{i}", time, parse_document(f"<a>{body}</a>".encode())))
        for i, (time, body) in enumerate(zip(times, bodies, strict=True))
    ]
    sides = [node("a", node(f"k->{side}k"), node(f"l->{side}l")) for side in "lr"]
    joins = [
        (join(sides[0], [("lk", "=", "rk"), ("ll", op, "rl")], sides[1], JOIN), (end,))
        for op, end in (("=", float("inf")), ("<", 2.0))
    ]
    found, rows = processed(Mmqjp(engine, views), joins, arrivals, 3)
    assert found == expected(joins, arrivals)
    assert rows == len(found) > 0


@given(st.lists(queries(), min_size=1, max_size=2), documents())
@st.examples(3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_agrees_with_the_oracle(spark, joins, arrivals):
    engine = SparkEngine(spark)
    try:
        found, rows = processed(Mmqjp(engine), joins, arrivals, 3)
    finally:
        engine.close()
    assert found == expected(joins, arrivals)
    assert rows == len(found)
