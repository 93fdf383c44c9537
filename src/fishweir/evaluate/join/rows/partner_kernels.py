"""Kernels that take rows out of several runs.

In: the addresses of the columns of all runs, one line for each run, since a kernel takes a fixed number of arrays. All
columns consist of 64-bit words. Out: the rows whose keys are looked up, and their columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishweir.evaluate.arrays import Ints
from fishweir.jit import kernel, word_from

KEYS, CLASSES, DOCUMENTS, LISTS, OF_DOCUMENTS = 0, 1, 2, 3, 9
"""The columns of a line: of rows; the starts and the elements of three lists; then the columns of documents."""
RUN = 40
"""The position of a document in its run has this many bits."""


@kernel
def equal_rows(
    runs: Any, sizes: Ints, own: Any, wanted: Any, most: Ints, itself: int, documents: Ints
) -> tuple[Ints, int, Ints, int, Any]:
    """Looks up ascending keys in the ascending keys of each run. Returns stretches (position of the key, start, end) of
    a list of rows, this list (run, row), both with their lengths, and which runs have no part in it: those in which
    there are more than `most` such rows, or rows of another class with one of these keys. The run `itself` is that of
    the keys, where rows of the same document are left out; `documents` are those of the keys."""
    stretches, rows = np.empty((3, len(wanted) + 16), np.int64), np.empty((2, len(wanted) + 16), np.int64)
    exceeds = np.zeros(len(runs), np.bool_)
    count = total = 0
    for run in range(len(runs)):
        keys, size, counted, listed = runs[run, KEYS], sizes[run], count, total
        i, first = next_equal(keys, size, wanted, 0, 0)
        while i < len(wanted):
            last, start = first, total
            while last < size and word_from(keys, last) == wanted[i] and not exceeds[run]:
                exceeds[run] = word_from(runs[run, CLASSES], last) != own or total - listed == most[run]
                if total == rows.shape[1]:
                    rows = wider(rows)
                rows[0, total], rows[1, total] = run, last
                total += run != itself or np.int64(word_from(runs[run, DOCUMENTS], last)) != documents[i]
                last += 1
            if exceeds[run]:
                break
            if total > start:
                if count == stretches.shape[1]:
                    stretches = wider(stretches)
                stretches[0, count], stretches[1, count], stretches[2, count] = i, start, total
                count += 1
            i, first = next_equal(keys, size, wanted, i + 1, first)
        if exceeds[run]:
            count, total = counted, listed
    return stretches, count, rows, total, exceeds


@kernel
def next_equal(keys: Any, size: int, wanted: Any, i: int, first: int) -> tuple[int, int]:
    """The next wanted key, starting with the i-th, that is among the keys from `first` on, and its position there. A
    search begins where the previous one ended, and doubles its steps."""
    while i < len(wanted) and first < size:
        key = wanted[i]
        if word_from(keys, first) == key:
            return i, first
        high, step = first, 1
        while high < size and word_from(keys, high) < key:
            first, high, step = high + 1, high + step, 2 * step
        high = min(high, size)
        while first < high:
            middle = (first + high) >> 1
            if word_from(keys, middle) < key:
                first = middle + 1
            else:
                high = middle
        i += first < size and word_from(keys, first) > key
    return len(wanted), first


@kernel
def wider(matrix: Any) -> Any:
    found = np.empty((matrix.shape[0], 2 * matrix.shape[1]), matrix.dtype)
    found[:, : matrix.shape[1]] = matrix
    return found


@kernel
def columns_of_rows(runs: Any, rows: Ints, size: int) -> tuple[Ints, Any, Ints, Any, Any, Any]:
    """For the first rows (run, row): the document of each as a number that no other run has, the columns of the
    documents, and three lists of each row: their starts, and the elements of each."""
    many = runs.shape[1] - OF_DOCUMENTS
    documents, columns = np.empty(size, np.int64), np.empty((many, size), np.uint64)
    starts = np.zeros((3, size + 1), np.int64)
    for i in range(size):
        run, row = rows[0, i], rows[1, i]
        document = np.int64(word_from(runs[run, DOCUMENTS], row))
        documents[i] = run << RUN | document
        for column in range(many):
            columns[column, i] = word_from(runs[run, OF_DOCUMENTS + column], document)
        for which in range(3):
            bounds = runs[run, LISTS + 2 * which]
            starts[which, i + 1] = starts[which, i] + np.int64(word_from(bounds, row + 1) - word_from(bounds, row))
    nodes, values = np.empty(starts[0, size], np.uint64), np.empty(starts[1, size], np.uint64)
    members = np.empty(starts[2, size], np.uint64)
    for i in range(size):
        run, row = rows[0, i], rows[1, i]
        copy_list(runs[run], LISTS, row, nodes, starts[0, i])
        copy_list(runs[run], LISTS + 2, row, values, starts[1, i])
        copy_list(runs[run], LISTS + 4, row, members, starts[2, i])
    return documents, columns, starts, nodes, values, members


@kernel
def copy_list(columns: Any, which: int, row: int, target: Any, at: int) -> None:
    first, last = np.int64(word_from(columns[which], row)), np.int64(word_from(columns[which], row + 1))
    for entry in range(first, last):
        target[at + entry - first] = word_from(columns[which + 1], entry)
