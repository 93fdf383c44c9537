"""`fishweir repair`: rebuilds what can be rebuilt, sets damaged files aside, and reports what is lost.

Nothing is deleted: replaced and discarded files are moved to `damaged/` in the home. The job must not be running.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from fishweir.catalog.catalog import Catalog
from fishweir.catalog.checksums import RESTORE
from fishweir.engine.check import OnProgress, Report, check, rebuilt_by_the_job
from fishweir.errors import HomeError
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import FORMAT, CatalogNote, Home, write_json
from fishweir.records import dataclass
from fishweir.sealed import read_sealed, seal_of, writing


@dataclass(frozen=True, slots=True)
class Repaired:
    """The repairs, and the remaining defects: that data cannot be recovered without a backup."""

    done: tuple[str, ...]
    left: Report

    def __str__(self) -> str:
        lines = [f"  {line}" for line in self.done] or ["  nothing to rebuild"]
        lost = [f"  {finding}" for finding in self.left.findings]
        return "\n".join(["rebuilt:", *lines, *(["cannot be recovered without a backup:", *lost] if lost else [])])


def repair(
    home: Path | str,
    discard: bool = False,
    on_progress: OnProgress | None = None,
    accept_older_catalog: bool = False,
) -> Repaired:
    """Rebuilds what can be rebuilt. With `discard`, the newest micro-batch is discarded if its commit or its results
    are damaged: the next run evaluates its documents again. With `accept_older_catalog`, the home continues with a
    catalog that has lost its newest changes.
    """
    place = Home(home)
    if not place.path.exists():
        raise HomeError(f"there is no home at {place.path}")
    with place.job_lock():
        done = [*_identity(place), *_streams(place), *_lists(place), *_counters(place), *_plan(place)]
        if discard:
            done += _newest(place)
        if accept_older_catalog:
            done += _older_catalog(place)
    return Repaired(tuple(done), check(place.path, on_progress))


def _aside(home: Home, path: Path) -> str:
    """Moves a file to `damaged/`."""
    target = _place_for(home, path)
    os.rename(path, target)
    return f"{path} was moved to damaged/{target.name}"


def _kept(home: Home, path: Path, before: bytes) -> str:
    """Writes the previous content of a file to `damaged/`."""
    target = _place_for(home, path)
    target.write_bytes(before)
    return f"{path} was copied to damaged/{target.name}"


def _place_for(home: Home, path: Path) -> Path:
    """A place in `damaged/`, with the name of a file and the time."""
    folder = home.path / "damaged"
    folder.mkdir(exist_ok=True)
    return folder / f"{time.time_ns()}-{'-'.join(path.relative_to(home.path).parts)}"


def _is_whole(path: Path) -> bool:
    try:
        read_sealed(path)
    except HomeError:
        return False
    return True


def _identity(home: Home) -> Iterator[str]:
    about = home.path / "home.json"
    if _is_whole(about):
        return
    try:
        with closing(sqlite3.connect(f"file:{home.path / 'catalog.db'}?mode=ro", uri=True)) as connection:
            (id,) = connection.execute("select id from home").fetchone()
    except (sqlite3.DatabaseError, TypeError) as error:
        raise HomeError(f"{about} cannot be rebuilt: the catalog does not have the id of the home ({error})") from error
    if about.exists():
        yield _aside(home, about)
    write_json(about, {"format": FORMAT, "id": id})
    yield f"{about} was rebuilt from the catalog"


def _streams(home: Home) -> Iterator[str]:
    try:
        catalog = Catalog(home.path / "catalog.db", is_new=False)
        streams = catalog.streams()
    except HomeError:
        return  # the following check reports it
    for id, stream in streams.values():
        path = home.streams / str(id) / "stream.json"
        if path.exists() and not _is_whole(path):
            yield _aside(home, path)
        if not path.exists():
            home.add_stream(id, stream)
            yield f"{path} was rebuilt from the catalog"
    catalog.close()


def _older_catalog(home: Home) -> Iterator[str]:
    """Accepts a catalog that is behind, unless results refer to what it has lost."""
    noted, catalog = home.catalog_noted(), Catalog(home.path / "catalog.db", is_new=False)
    try:
        now = catalog.version()
        used = max((commit.version for commit in ResultsTable(home.results).commits()), default=0)
        if used > now:
            raise HomeError(f"{catalog.place} has {now:,} changes, but results refer to change {used:,}: {RESTORE}")
        if (now, catalog.generation()) < (noted.version, noted.generation):
            home.note_catalog(CatalogNote(now, catalog.generation()))
            lost = f"; the changes {now + 1:,} to {noted.version:,} are lost" if now < noted.version else ""
            yield f"{catalog.place} was accepted as is{lost}; results delivered since then may be delivered again"
    finally:
        catalog.close()


def _lists(home: Home) -> Iterator[str]:
    """Repairs the segment lists: keeps valid lines, and lists segments without a line with their current content.
    Programs may publish meanwhile."""
    from fishweir.intake.healing import heal
    from fishweir.intake.segment_list import LIST, locked, rebuilt_list
    from fishweir.intake.segments import Segments

    for folder in sorted(home.streams.glob("*/log")):
        path = folder / LIST
        is_missing = not path.exists()
        with locked(str(folder)) as list_file:
            before = path.read_bytes()
            with suppress(HomeError):  # about segments, which are not repaired
                heal(Segments(folder), list_file)
            rebuilt = rebuilt_list(folder)
            if rebuilt is not None:
                new = folder / f".{LIST}.tmp"
                with writing(path, new):
                    new.write_bytes(rebuilt)
                    new.replace(path)
            is_changed = path.read_bytes() != before
        if is_changed:
            kept = f"{path} was missing" if is_missing else _kept(home, path, before)
            yield f"{kept}, and rebuilt from the segments"


def _counters(home: Home) -> Iterator[str]:
    for path in rebuilt_by_the_job(home):
        if path.exists() and not _is_whole(path):
            yield f"{_aside(home, path)}; the next run rebuilds it"


def _plan(home: Home) -> Iterator[str]:
    """Removes a damaged list: the planner then rebuilds the plan from the catalog. Old segments stay for old
    results.
    """
    path = home.plan / "current.json"
    if path.exists() and not _is_whole(path):
        yield f"{_aside(home, path)}; the next run rebuilds the plan from the catalog"


def _newest(home: Home) -> Iterator[str]:
    """Discards the newest micro-batch if it is damaged and the previous one is intact."""
    table = ResultsTable(home.results)
    try:
        chain = table.commits()
    except HomeError:
        chain = table.read_so_far
    names = sorted(table.commits_folder.glob("[0-9]*.json"))
    if chain and len(chain) == len(names) and not _broken(table, chain[-1]):
        return
    kept = len(chain) - (len(chain) == len(names))
    if kept < len(names) - 1:
        return  # more than the newest is lost: the states of earlier micro-batches are gone
    before = chain[kept - 1] if kept else None
    gone = [s["name"] for s in (before.states if before else []) if not (home.state / s["name"]).exists()]
    if gone:
        yield f"{names[-1]} was kept: {home.state / gone[0]}, which the previous commit needs, is missing"
        return
    for path in names[kept:]:
        yield f"{_aside(home, path)}; the next run evaluates its documents again"
    if before is None:
        (table.commits_folder / "last").unlink(missing_ok=True)
    else:
        _, sum = read_sealed(names[kept - 1])
        write_json(table.commits_folder / "last", {"batch": before.batch, "xxh3": sum})


def _broken(table: ResultsTable, commit: Commit) -> bool:
    folder = table.folder_of(commit)
    return any(not (folder / name).exists() or seal_of(folder / name) != seal for name, seal in commit.files.items())
