"""Commits: which files of which micro-batch count.

A micro-batch exists once its commit file does; that file is written under a temporary name and
renamed. Commits alone say how far each stream has been evaluated: whoever runs the job goes on behind the last one, and
what a micro-batch without a commit had written is written again. So each result is in the table exactly once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishweir.pipeline.home import read_json, write_json

if TYPE_CHECKING:
    import pyarrow as pa


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
    states: list[dict[str, Any]] = field(default_factory=list)
    """What is retained after it for later documents to join (retained.StateFile)."""
    watermarks: dict[str, float] = field(default_factory=dict)
    """How far each stream that joins read has come."""
    dropped_by: dict[str, float] = field(default_factory=dict)
    """By stream, the highest watermark that documents were ever dropped by."""
    missed: dict[str, int] = field(default_factory=dict)
    """Of each stream the documents in it that came later than allowed."""
    shed: dict[str, int] = field(default_factory=dict)
    """By stream, the entries that were left out under overload; their numbers are in the files `shed-*`."""
    shedding: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By stream, what was decided (shedding.StreamShed)."""
    level: int = 0
    """How far the allowance for late items is cut to keep the state within its limit (lateness.LEVELS)."""


class ResultsTable:
    """The results folder: `NNN/match-*.parquet` and `NNN/probe-*.parquet`, result rows of the two stages;
    `NNN/aside-*.parquet`, `commits/NNN.json`, and `sets/`, the sets of queries that rows name."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.commits_folder, self.sets = folder, folder / "commits", folder / "sets"
        self.commits_folder.mkdir(parents=True, exist_ok=True)
        self._read: dict[str, Commit] = {}

    def batch_folder(self, batch: int) -> Path:
        return self.folder / f"{batch:09d}"

    def commit(self, commit: Commit) -> None:
        write_json(self._path(commit.batch), asdict(commit))

    def commits(self, after: int = -1) -> list[Commit]:
        """All commits behind a batch, in order; a commit is read once."""
        names = sorted(path.name for path in self.commits_folder.glob("[0-9]*.json"))
        return [commit for commit in map(self._commit, names) if commit.batch > after]

    def rows(self, commit: Commit) -> pa.Table:
        """The result rows of a micro-batch."""
        from fishweir.evaluate.results import RESULT

        return self._table(commit, ("match", "probe"), RESULT)

    def newest(self) -> Commit:
        """The last commit; an empty one where there is none."""
        names = sorted(path.name for path in self.commits_folder.glob("[0-9]*.json"))
        return self._commit(names[-1]) if names else Commit(-1, 0)

    def of_batch(self, batch: int) -> Commit:
        """The commit of a micro-batch, or an empty one."""
        return self._commit(self._path(batch).name) if self._path(batch).exists() else Commit(-1, 0)

    def _commit(self, name: str) -> Commit:
        if name not in self._read:
            self._read[name] = Commit(**read_json(self.commits_folder / name, None))
        return self._read[name]

    def aside(self, commit: Commit) -> pa.Table:
        from fishweir.pipeline.writer import ASIDE

        return self._table(commit, ("aside",), ASIDE)

    def shed(self, commit: Commit) -> pa.Table:
        """The entries that a micro-batch left out."""
        from fishweir.pipeline.writer import SHED

        return self._table(commit, ("shed",), SHED)

    def offsets(self) -> dict[str, int]:
        """How far each stream has been evaluated."""
        done: dict[str, int] = {}
        for commit in self.commits():
            done |= commit.offsets
        return done

    def _path(self, batch: int) -> Path:
        return self.commits_folder / f"{batch:09d}.json"

    def _table(self, commit: Commit, kinds: tuple[str, ...], schema: pa.Schema) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq  # late: who registers and counts reads no results

        folder = self.batch_folder(commit.batch)
        files = [folder / name for name in commit.files if name.startswith(kinds)]
        tables = [pq.read_table(file, schema=schema) for file in files]
        return pa.concat_tables(tables) if tables else schema.empty_table()
