"""Rows of several runs that are probed together: the same pairs as the oracle, and one probe for all runs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fishweir.evaluate.join.rows import partners
from fishweir.evaluate.join.rows.partner_kernels import equal_rows
from fishweir.languages.script import parse_script
from tests.evaluate.join.runs_support import expected, joined, parsed

RUNS, SIZE, VALUES = 5, 60, 400
"""Few rows of a run have an equal value, so they are taken out of it."""
QUERIES = [
    ("R [range 30] as l, S [range 30] as r", "l.a = r.a and l.b >= 1"),
    ("R [range 30] as l, S [range 9] as r", "l.a = r.a and l.b >= r.b"),
    ("R [range 60] as l, R [range 60] as r", "l.a = r.a and r.b <= 1"),
    ("R [range 60] as l, R [range 60] as r", "l.a = r.a and l.b != r.b"),
]


def documents(seed: int) -> list[tuple[str, str, float]]:
    draw = random.Random(seed)
    return [
        (draw.choice("RS"), f"<t><a>{draw.randrange(VALUES)}</a><b>{draw.randrange(3)}</b></t>", float(i // 3))
        for i in range(RUNS * SIZE)
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("streams", "where"), QUERIES)
def test_pairs_with_several_runs(streams, where, seed, monkeypatch):
    taken, whole = [], partners._together

    def counted(probes):
        found = whole(probes)
        taken.append((len(probes), found[0] is not None))
        return found

    monkeypatch.setattr(partners, "_together", counted)
    (statement,) = parse_script(f"select * from {streams} where {where}")
    some, docs = [(statement.shape, statement.constants)], parsed(documents(seed))
    batches = [docs[start : start + SIZE] for start in range(0, len(docs), SIZE)]
    assert joined(some, batches) == expected(some, docs)
    assert any(runs > 2 and found for runs, found in taken)


@pytest.mark.parametrize("seed", range(20))
def test_equal_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = [np.sort(rng.integers(0, 200, rng.integers(0, 150))).astype(np.uint64) for _ in range(4)]
    classes = [np.where(own % np.uint64(50) == 0, 8, 7).astype(np.uint64) for own in keys]
    documents = [rng.integers(0, 20, len(own)) for own in keys]
    wanted = np.sort(rng.integers(0, 220, rng.integers(0, 60))).astype(np.uint64)
    own, most = rng.integers(0, 20, len(wanted)), rng.integers(0, 40, 4)
    lines = zip(keys, classes, documents, strict=True)
    addresses = np.array([[column.ctypes.data for column in line] for line in lines], np.uint64)
    sizes = np.array([len(run) for run in keys])
    found, count, rows, total, exceeds = equal_rows(addresses, sizes, np.uint64(7), wanted, most, 2, own)
    hits = [[(i, row) for i, key in enumerate(wanted) for row in np.flatnonzero(run == key)] for run in keys]
    hits[2] = [(i, row) for i, row in hits[2] if documents[2][row] != own[i]]
    kept = []
    for run, some in enumerate(hits):
        mixed = any(classes[run][row] != 7 for key in wanted for row in np.flatnonzero(keys[run] == key))
        assert exceeds[run] or (len(some) <= most[run] and not mixed)
        assert not exceeds[run] or len(some) >= most[run] or mixed
        kept += [] if exceeds[run] else [(run, i, int(row)) for i, row in some]
    assert total == len(kept)
    listed = [
        (int(rows[0, at]), int(i), int(rows[1, at])) for i, start, end in found[:, :count].T for at in range(start, end)
    ]
    assert listed == kept
