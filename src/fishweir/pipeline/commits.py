"""Commits: the valid files of each micro-batch.

A micro-batch is valid once its commit file exists. The commit file is written under a temporary name and renamed. Only
commits record how far each stream has been evaluated: a job continues after the last commit, and overwrites the output
of a micro-batch without a commit. So each result is in the table exactly once.

A commit contains the seals of its files and the checksum of the previous commit, and `last` names the newest commit.
Every reader thus notices a commit or file that is missing, damaged or from another home.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishweir.errors import HomeError
from fishweir.pipeline.home import read_json, write_json
from fishweir.records import dataclass
from fishweir.sealed import Stamp, damaged, overwrite_json, read_sealed, verify, writing

if TYPE_CHECKING:
    import pyarrow as pa

KEPT_BYTES = 1 << 25
"""The maximum size in bytes of the cache of result rows: delivery, published streams and readers all read new results.
"""


SHARED = 1000
"""The number of micro-batches that share a folder of result files."""


@dataclass(frozen=True)
class Commit:
    """A completed micro-batch: its catalog version, files, counts and offsets."""

    batch: int
    version: int
    files: dict[str, str] = field(default_factory=dict)
    """Result files with their seals."""
    folder: str = ""
    """The folder of these files, in the results folder; if empty, it has the number of the micro-batch."""
    fired: dict[str, list[int]] | None = None
    """The queries that may have rows in the files (fired_index.py); None if unknown."""
    documents: int = 0
    matches: int = 0
    aside: int = 0
    offsets: dict[str, int] = field(default_factory=dict)
    at: float = 0.0
    seconds: float = 0.0
    states: list[dict[str, Any]] = field(default_factory=list)
    """The state retained after the micro-batch for joins with later documents (states.StateFile)."""
    watermarks: dict[str, float] = field(default_factory=dict)
    """The watermark of each stream that joins read."""
    dropped_by: dict[str, float] = field(default_factory=dict)
    """By stream, the highest watermark by which documents were ever dropped."""
    missed: dict[str, int] = field(default_factory=dict)
    """By stream, the documents that arrived later than allowed."""
    shed: dict[str, int] = field(default_factory=dict)
    """By stream, the number of entries that were left out under overload; the entries are listed in the files `shed-*`.
    """
    cut: dict[str, int] = field(default_factory=dict)
    """By stream, the number of entries that were evaluated without some patterns; the same files list their levels."""
    elements: dict[str, int] = field(default_factory=dict)
    """By stream, the number of topmost elements that were left out of these entries."""
    shedding: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By stream, the decision (shedding.StreamShed)."""
    level: int = 0
    """The level to which the lateness allowance is reduced to keep the state within its limit (lateness.LEVELS)."""
    past: list[int] = field(default_factory=list)
    """The queries whose results come from a backfill (engine/backfill.py) instead of a micro-batch."""
    upto: dict[str, int] = field(default_factory=dict)
    """The progress of the backfill: the last entry of each stream that it reads."""
    is_over: bool = True
    """Whether the backfill ended with this commit. From then on, its queries get their results from micro-batches."""
    handed_over: bool = False
    """Whether the backfill ended by adding the state of its past to that of the job (engine/handover.py)."""
    hidden: list[int] = field(default_factory=list)
    """Queries whose results in this micro-batch do not count because a backfill finds them."""
    absences: bool = False
    """Whether its rows are documents whose window ended without a match (engine/absences.py)."""
    completes: int = -1
    """The micro-batch whose results with omitted patterns this commit completes. It then has no files of its own."""
    before: str = ""
    """The checksum of the previous commit: commits form a chain."""


def shared_folder(batch: int) -> str:
    """The name of the folder with the files of a micro-batch and its neighbours. Their names contain its number."""
    return f"{batch // SHARED:06d}"


def handover_tag(queries: Sequence[int]) -> int:
    """The value that documents from before a handover of some queries have in place of a catalog version."""
    return -2 - queries[0]


class ResultsTable:
    """The results folder: `NNN/match-*.arrow` and `NNN/probe-*.arrow` with the result rows of the two stages,
    `NNN/aside-*.arrow`, `commits/NNN.json`, and `sets/` with the query sets that rows name.

    A thousand micro-batches share a folder, since a new folder costs as much as several files. Commits between
    micro-batches (backfills, absences) have a folder of their own, and so had micro-batches of earlier versions.
    """

    def __init__(self, folder: Path, upto: int | None = None) -> None:
        """Opens the table; with `upto`, as of the commit of that micro-batch."""
        self.upto = upto
        self.folder, self.commits_folder, self.sets = folder, folder / "commits", folder / "sets"
        self._last, self._lock = self.commits_folder / "last", threading.Lock()
        with writing(self.commits_folder):
            self.commits_folder.mkdir(parents=True, exist_ok=True)
        self._chain: list[tuple[Commit, str]] = []
        """All commits, with their checksums."""
        self._completed: set[int] = set()
        self._cut: list[Commit] = []
        """The micro-batches so far that omitted patterns."""
        self._tags: dict[int, int] = {}
        """By query, the tag of its documents from before a handover."""
        self._is_whole = False
        """Whether all commits that existed at the first read have been found."""

    def own_folder(self, batch: int) -> Path:
        """The folder of a commit between micro-batches."""
        return self.folder / f"{batch:09d}"

    def folder_of(self, commit: Commit) -> Path:
        """The folder with the files of a commit."""
        return self.folder / commit.folder if commit.folder else self.own_folder(commit.batch)

    def commit(self, commit: Commit) -> None:
        self._follow()
        before = self._chain[-1][1] if self._chain else ""
        commit = replace(commit, before=before)
        sum = write_json(self._path(commit.batch), vars(commit))
        overwrite_json(self._last, {"batch": commit.batch, "xxh3": sum})
        with self._lock:
            if len(self._chain) == commit.batch:  # known without reading it
                self._add(commit, sum)

    def commits(self, after: int = -1, upto: int | None = None) -> list[Commit]:
        """All commits after a micro-batch, in order, optionally up to another one. Each commit is read once."""
        if upto is None or upto >= len(self._chain):
            self._follow()
        return [commit for commit, _ in self._chain[after + 1 : None if upto is None else upto + 1]]

    def known(self, after: int) -> list[Commit]:
        """The commits after a micro-batch that this process has made or read, without looking for others."""
        return [commit for commit, _ in self._chain[after + 1 :]]

    @property
    def read_so_far(self) -> list[Commit]:
        """The commits up to the point where the chain is broken, or was broken when it was last read."""
        return [commit for commit, _ in self._chain]

    def rows(self, commit: Commit) -> pa.Table:
        """The result rows of a micro-batch, or of the one that it completes."""
        from fishweir.evaluate.results import RESULT

        if commit.completes >= 0:
            commit = self.of_batch(commit.completes)
        return self._table(commit, ("match", "probe"), RESULT)

    def newest(self) -> Commit:
        """The last commit, or an empty one if there is none."""
        self._follow()
        return self._chain[-1][0] if self._chain else Commit(-1, 0)

    def of_batch(self, batch: int) -> Commit:
        """The commit of a micro-batch, or an empty one."""
        self._follow()
        return self._chain[batch][0] if 0 <= batch < len(self._chain) else Commit(-1, 0)

    def settled(self, queries: Collection[int], batch: int, since: int = 0) -> Commit:
        """The commit that records, as of a micro-batch, how far the results of some queries have been found: the last
        micro-batch whose results count, or the last commit of the backfill that finds them. If documents without a
        match were committed after it, and later than `batch`, the one before. Commits of versions before `since` say
        nothing: if the queries start in the past, a backfill has yet to begin.
        """
        self._follow()
        lacks_absences = self._has_absences_after(batch)
        for place in range(min(batch, len(self._chain) - 1), -1, -1):
            commit = self._chain[place][0]
            if commit.version < since:
                break
            if commit.completes >= 0 or commit.absences or (commit.past and set(queries).isdisjoint(commit.past)):
                continue
            if commit.past or set(queries).isdisjoint(commit.hidden):
                if not lacks_absences:
                    return commit
                lacks_absences = False
        return Commit(-1, 0)

    def _has_absences_after(self, batch: int) -> bool:
        """Whether documents without a match were committed between a micro-batch and the next one."""
        for place in range(batch + 1, len(self._chain)):
            commit = self._chain[place][0]
            if commit.absences or not (commit.past or commit.completes >= 0):
                return commit.absences
        return False

    def _follow(self) -> None:
        """Reads the new commits; raises an error if the chain is broken."""
        with self._lock:
            newest = -1 if self._is_whole or self.upto is not None else self._newest()
            while (path := self._path(len(self._chain))).exists() and len(self._chain) - 1 != self.upto:
                content, sum = read_sealed(path)
                if content["before"] != (self._chain[-1][1] if self._chain else ""):
                    raise damaged(
                        path,
                        f"does not follow {self._path(len(self._chain) - 1).name}: one belongs to another home",
                    )
                self._add(Commit(**content), sum)
            if len(self._chain) <= newest:
                raise damaged(path, f"is missing, though {newest + 1:,} micro-batches were committed")
            self._is_whole = True

    def _add(self, commit: Commit, sum: str) -> None:
        self._chain.append((commit, sum))
        if commit.handed_over:
            self._tags |= dict.fromkeys(commit.past, handover_tag(commit.past))
        if commit.cut:
            self._cut.append(commit)
        if commit.completes >= 0:
            self._completed.add(commit.completes)

    def tags(self, numbers: Iterable[int]) -> list[int]:
        """For each query, the tag of the documents from before its handover; 0 if it has none."""
        self._follow()
        return [self._tags.get(number, 0) for number in numbers]

    def cut(self) -> list[Commit]:
        """The micro-batches that omitted patterns and were not completed."""
        self._follow()
        return self.known_cut()

    def known_cut(self) -> list[Commit]:
        """The same among the commits that this process has made or read, without looking for others."""
        return [commit for commit in self._cut if commit.batch not in self._completed]

    def is_completed(self, batch: int) -> bool:
        """Whether the results with omitted patterns were committed again, complete."""
        return batch in self._completed

    def _newest(self) -> int:
        """The highest number that a commit ever had in this table."""
        last = read_json(self._last, {"batch": -1}, rebuilt="the next commit")["batch"]
        return max([last, *(int(path.stem) for path in self.commits_folder.glob("[0-9]*.json"))])

    def aside(self, commit: Commit) -> pa.Table:
        from fishweir.pipeline.writer import ASIDE

        return self._table(commit, ("aside",), ASIDE)

    def shed(self, commit: Commit) -> pa.Table:
        """The entries that a micro-batch left out, or from which it omitted patterns, with their levels."""
        from fishweir.pipeline.writer import SHED

        return self._table(commit, ("shed",), SHED)

    def offsets(self) -> dict[str, int]:
        """The offset up to which each stream has been evaluated."""
        done: dict[str, int] = {}
        for commit in self.commits():
            done |= commit.offsets
        return done

    def _path(self, batch: int) -> Path:
        return self.commits_folder / f"{batch:09d}.json"

    def _table(self, commit: Commit, kinds: tuple[str, ...], schema: pa.Schema) -> pa.Table:
        import pyarrow as pa  # late: registering and counting read no results

        folder, tables = self.folder_of(commit), []
        for name, seal in commit.files.items():
            if name.startswith(kinds):
                now = verify(folder / name, seal)
                tables.append(_kept_tables.read(folder / name, now))
        return pa.concat_tables(tables) if tables else schema.empty_table()


class KeptTables:
    """A cache of the tables read last, by path and stamp, up to a number of bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes, self._lock = most, 0, threading.Lock()
        self._tables: OrderedDict[tuple[Path, Stamp], pa.Table] = OrderedDict()

    def read(self, path: Path, now: Stamp) -> pa.Table:
        from fishweir.pipeline.writer import read_rows

        with self._lock:
            if (path, now) in self._tables:
                self._tables.move_to_end((path, now))
                return self._tables[path, now]
        table = read_rows(path)
        with self._lock:
            if table.nbytes <= self._most and (path, now) not in self._tables:
                self._tables[path, now] = table
                self._bytes += table.nbytes
            while self._bytes > self._most:
                self._bytes -= self._tables.popitem(last=False)[1].nbytes
        return table

    def cache_clear(self) -> None:
        with self._lock:
            self._tables.clear()
            self._bytes = 0


_kept_tables = KeptTables(KEPT_BYTES)


def check_written(
    folder: Path,
    written: Mapping[str, str],
    hosts: Mapping[str, str],
    check: Callable[[Path, str], object] = verify,
) -> None:
    """Raises an error if the driver does not see the files that tasks report, with the seals that they report. `check`
    verifies a file by its seal."""
    for name, seal in written.items():
        try:
            check(folder / name, seal)
        except HomeError as error:
            raise HomeError(
                f"a task on the host {hosts.get(name, 'of the driver')} wrote {folder / name}, but the driver sees "
                f"something else ({str(error).partition(': ')[0]}): the home, set by --home or fishweir.open(home), "
                "must be on a file system that the driver and all workers see under the same path"
            ) from error
