"""Random queries, given as text, and random documents through the running Spark job equal the oracle."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import HealthCheck, given

import fishweir
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import CreateQuery
from fishweir.algebra.oracle import evaluate
from fishweir.languages.script import parse_script
from tests import strategies as st
from tests.generators import documents, shapes, to_text

numbers = count(1)


@pytest.fixture(scope="module")
def running(tmp_path_factory, spark):
    with fishweir.open(tmp_path_factory.mktemp("oracle") / "home", spark=spark) as weir:
        weir.start()
        yield weir


def expected(statements, texts):
    """(query, document, bindings as (variable, node, value)) by the oracle."""
    found = []
    for statement in statements:
        for id, text in texts.items():
            document = Document(id, 0.0, parse_document(text.encode()))
            for binding in evaluate(statement.shape, statement.constants, document):
                bound = {(name, node.id, node.value) for name, node in binding.items()}
                found.append((statement.name, id, frozenset(bound)))
    return found


@st.examples(15, suppress_health_check=list(HealthCheck))
@given(
    queries=st.lists(shapes(), min_size=5, max_size=25),
    texts=st.lists(documents(), min_size=3, max_size=12),
    dropped=st.sets(st.integers(0, 4)),
)
def test_job_equals_oracle(running, queries, texts, dropped):
    stream = f"S{next(numbers)}"
    script = [f"create stream {stream}"]
    for i, (shape, constants) in enumerate(queries):
        text = to_text(shape, constants).replace("in 'S'", f"in '{stream}'")
        script.append(f"create {stream}q{i} {text}")
    running.execute(";\n".join(script))
    for i in dropped:
        running.drop(f"{stream}q{i}")
    ids = [f"{stream}-{i}" for i in range(1, len(texts) + 1)]
    assert running.publish(stream, texts) == ids
    running.wait_idle()
    statements = [s for s in parse_script(";\n".join(script)) if isinstance(s, CreateQuery)]
    living = [s for i, s in enumerate(statements) if i not in dropped]
    found = [
        (r.query, r.documents[0], frozenset((v, str(b["node"]), b["value"]) for v, b in r.bindings.items()))
        for r in running.results()
        if r.query.startswith(f"{stream}q")
    ]
    assert sorted(found, key=repr) == sorted(expected(living, dict(zip(ids, texts, strict=True))), key=repr)
