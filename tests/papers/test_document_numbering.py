"""Numbers of retained documents: stable while the engine merges and drops runs, restarted if the old runs are
unknown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given

from fishweir.papers.document_numbering import DocumentNumbering
from tests import strategies as st


def run(*documents: tuple[int, int]) -> Any:
    """A run with only the stream and the number of each document."""
    streams, numbers = zip(*documents, strict=True) if documents else ((), ())
    return _Run(streams=np.array(streams, np.int64), numbers=np.array(numbers, np.int64))


class _Run(SimpleNamespace):
    def __len__(self) -> int:
        return len(self.numbers)


def test_numbers_stay_when_runs_are_merged() -> None:
    numbering = DocumentNumbering()
    assert numbering.number([], [run((0, 1), (1, 1))]).numbers[0].tolist() == [0, 1]
    second = numbering.number([run((0, 1), (1, 1))], [run((0, 2))])
    assert (second.restarted, second.numbers[1].tolist()) == (False, [2])
    third = numbering.number([run((0, 2), (1, 1), (0, 1))], [run((1, 2))])
    assert not third.restarted
    assert [own.tolist() for own in third.numbers] == [[2, 1, 0], [3]]
    assert [column.tolist() for column in third.locate(np.array([0, 3]))] == [[0, 1], [2, 0]]


def test_dropped_documents_are_not_located() -> None:
    numbering = DocumentNumbering()
    numbering.number([], [run((0, 1), (0, 2), (0, 3))])
    numbered = numbering.number([run((0, 2), (0, 3))], [run((0, 4))])
    assert not numbered.restarted
    assert numbered.is_retained(np.array([0, 1, 2, 3])).tolist() == [False, True, True, True]


def test_an_unknown_history_restarts_the_numbering() -> None:
    numbering = DocumentNumbering()
    assert numbering.number([run((0, 1))], [run((0, 2))]).restarted, "the retained documents are unknown"
    assert numbering.number([run((0, 1))], [run((0, 2))]).restarted, "the batch is repeated"
    numbering.number([run((0, 1), (0, 2))], [run((0, 3), (0, 4), (0, 5))])
    assert numbering.number([run((0, 5))], [run((0, 6))]).restarted, "most were dropped"


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=8), st.randoms(use_true_random=False))
def test_a_number_identifies_one_document_until_a_restart(batches: list[list[int]], random: Any) -> None:
    numbering, retained, named, count = DocumentNumbering(), list[tuple[int, int]](), dict[int, tuple[int, int]](), 0
    for streams in batches:
        new = [(stream, count := count + 1) for stream in streams]
        kept = [document for document in retained if random.random() < 0.9]
        cut = random.randrange(len(kept) + 1)
        runs = [kept[:cut], kept[cut:], new]
        numbered = numbering.number([run(*runs[0]), run(*runs[1])], [run(*new)])
        if numbered.restarted:
            named = {}
        for own, documents in zip(numbered.numbers, runs, strict=True):
            for number, document in zip(own.tolist(), documents, strict=True):
                assert named.setdefault(number, document) == document
        where, at = numbered.locate(np.concatenate(numbered.numbers))
        assert [runs[i][j] for i, j in zip(where.tolist(), at.tolist(), strict=True)] == [*kept, *new]
        retained = [*kept, *new]
