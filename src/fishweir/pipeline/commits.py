"""Commits: which files of which micro-batch count.

A micro-batch exists once its commit file does; that file is written under a temporary name and
renamed. Spark repeats a micro-batch that it did not see finish: committed before, it is passed over;
otherwise its files are written again. So each result is in the table exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fishweir.pipeline.annotated import ANNOTATED
from fishweir.pipeline.combined import COMBINED
from fishweir.pipeline.home import read_json, write_json
from fishweir.pipeline.joining import PAIR
from fishweir.pipeline.rows import ASIDE, MATCH


@dataclass(frozen=True)
class Commit:
    """A finished micro-batch: the catalog's version it ran with, its files, counts and offsets."""

    batch: int
    version: int
    files: list[str] = field(default_factory=list)
    documents: int = 0
    matches: int = 0
    aside: int = 0
    offsets: dict[str, int] = field(default_factory=dict)
    at: float = 0.0
    seconds: float = 0.0
    runs: list[dict[str, Any]] = field(default_factory=list)
    """What is retained after it for later documents to meet (retained.RunFile)."""
    times: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Of each stream the oldest and the newest timestamp in it."""


class ResultsTable:
    """The results folder: `NNN/match-*.parquet`, `NNN/pair-*.parquet`, `NNN/many-*.parquet`, `NNN/note-*.parquet`,
    `NNN/aside-*.parquet`, `commits/NNN.json`, and `sets/`, the sets of queries that pairs name."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.commits_folder, self.sets = folder, folder / "commits", folder / "sets"
        self.commits_folder.mkdir(parents=True, exist_ok=True)
        self._read: dict[str, Commit] = {}

    def batch_folder(self, batch: int) -> Path:
        return self.folder / f"{batch:09d}"

    def commit(self, commit: Commit) -> None:
        write_json(self._path(commit.batch), asdict(commit))

    def is_committed(self, batch: int) -> bool:
        return self._path(batch).exists()

    def next_batch(self) -> int:
        """The number after that of the last commit."""
        names = sorted(self.commits_folder.glob("[0-9]*.json"))
        return int(names[-1].stem) + 1 if names else 0

    def commits(self, after: int = -1) -> list[Commit]:
        """All commits behind a batch, in order; a commit is read once."""
        names = sorted(path.name for path in self.commits_folder.glob("[0-9]*.json"))
        for name in names:
            if name not in self._read:
                self._read[name] = Commit(**read_json(self.commits_folder / name, None))
        return [self._read[name] for name in names if self._read[name].batch > after]

    def matches(self, commit: Commit) -> pa.Table:
        return self._table(commit, "match", MATCH)

    def pairs(self, commit: Commit) -> pa.Table:
        return self._table(commit, "pair", PAIR)

    def annotated(self, commit: Commit) -> pa.Table:
        return self._table(commit, "note", ANNOTATED)

    def combined(self, commit: Commit) -> pa.Table:
        return self._table(commit, "many", COMBINED)

    def newest_runs(self) -> list[dict[str, Any]]:
        """What the last micro-batch left for later ones."""
        names = sorted(self.commits_folder.glob("[0-9]*.json"))
        return Commit(**read_json(names[-1], None)).runs if names else []

    def aside(self, commit: Commit) -> pa.Table:
        return self._table(commit, "aside", ASIDE)

    def offsets(self) -> dict[str, int]:
        """How far each stream has been evaluated."""
        done: dict[str, int] = {}
        for commit in self.commits():
            done |= commit.offsets
        return done

    def newest_times(self) -> dict[str, float]:
        """The newest timestamp that has been evaluated of each stream."""
        newest: dict[str, float] = {}
        for commit in self.commits():
            for stream, (_, time) in commit.times.items():
                newest[stream] = max(time, newest.get(stream, time))
        return newest

    def _path(self, batch: int) -> Path:
        return self.commits_folder / f"{batch:09d}.json"

    def _table(self, commit: Commit, kind: str, schema: pa.Schema) -> pa.Table:
        folder = self.batch_folder(commit.batch)
        files = [folder / name for name in commit.files if name.startswith(kind)]
        tables = [pq.read_table(file, schema=schema) for file in files]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def blocks(self, commit: Commit) -> Iterator[pa.Table]:
        """The match rows by document, some at a time: expanded sets may be large."""
        return _some(self.matches(commit), ["stream", "document"])

    def annotated_blocks(self, commit: Commit) -> Iterator[pa.Table]:
        return _some(self.annotated(commit), ["stream", "document"])

    def combined_blocks(self, commit: Commit) -> Iterator[pa.Table]:
        return _some(self.combined(commit), ["timestamp"])


def _some(table: pa.Table, order: list[str], rows: int = 2_000) -> Iterator[pa.Table]:
    if len(table):
        table = table.sort_by([(name, "ascending") for name in order])
    for start in range(0, len(table), rows):
        yield table.slice(start, rows)
