"""`fishweir check`: verifies a home, even while its job is running. It reads everything and changes nothing.

In: a home. Out: the defects, file by file. It verifies checksums, references (files that commits, lists and result rows
name must exist), the chain of commits, and counts (documents evaluated or left out against log entries).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fishweir.catalog.catalog import Catalog
from fishweir.engine.own_catalog import check_progress
from fishweir.errors import HomeError
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import FORMAT, READABLE, Home
from fishweir.records import dataclass
from fishweir.sealed import TO_DO, read_sealed, reading, seal_of

if TYPE_CHECKING:
    from fishweir.intake.segment_list import Listed

OnProgress = Callable[[int, int], None]
"""Called with the number of verified bytes and the total."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A missing or damaged file: the defect, and how the file is rebuilt, if it can be."""

    path: Path
    wrong: str
    rebuilt: str = ""

    def __str__(self) -> str:
        return f"{self.wrong}" + (f" [{self.rebuilt}]" if self.rebuilt else "")


@dataclass(frozen=True, slots=True)
class Report:
    files: int
    bytes: int
    findings: tuple[Finding, ...]

    @property
    def is_whole(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        verdict = "nothing is missing or damaged" if self.is_whole else f"{len(self.findings):,} defects:"
        lines = [f"{self.files:,} files, {self.bytes / 2**20:,.1f} MiB verified: {verdict}"]
        return "\n".join([*lines, *(f"  {finding}" for finding in self.findings)])


Step = tuple[Path, Callable[[], object], str]
"""A file, its verification, and how it would be rebuilt."""

REPAIR = "`fishweir repair` rebuilds it"
ANEW = "the next run rebuilds it; `fishweir repair` sets it aside"


def check(home: Path | str, on_progress: OnProgress | None = None) -> Report:
    """Verifies every file of a home."""
    place = Home(home)
    if not place.path.exists():
        raise HomeError(f"there is no home at {place.path}")
    found: list[Finding] = []
    steps: list[Step] = []
    for part in (_head, _logs, _results, _plan, _notes):
        try:
            steps += part(place)
        except HomeError as error:
            found.append(Finding(place.path, str(error)))
    total, done = sum(_size(path) for path, _, _ in steps), 0
    for path, verified, rebuilt in steps:
        try:
            verified()
        except HomeError as error:
            found.append(Finding(path, str(error).replace(TO_DO, "restore it from a backup"), rebuilt))
        done += _size(path)
        if on_progress is not None:
            on_progress(done, total)
    return Report(len(steps), total, tuple(dict.fromkeys(found)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _head(home: Home) -> Iterator[Step]:
    yield home.path / "home.json", lambda: _format(home), REPAIR
    yield home.path / "catalog.db", lambda: _catalog(home), ""


def _format(home: Home) -> None:
    content, _ = read_sealed(home.path / "home.json")
    if content["format"] not in READABLE:
        raise HomeError(f"{home.path / 'home.json'} has format {content['format']}; this version reads format {FORMAT}")


def _catalog(home: Home) -> None:
    """Verifies the catalog: its structure, the checksums of its rows, and that it is the newest of this home."""
    path, noted = home.path / "catalog.db", home.catalog_noted()
    if not path.exists() and not (home.has_streams and noted.own):
        return
    catalog = Catalog(path, is_new=False)
    try:
        catalog.verify()
        check_progress(catalog, noted)
    finally:
        catalog.close()


def _logs(home: Home) -> Iterator[Step]:
    from fishweir.intake.segment_list import LIST, OWN_SUFFIX, Listed, firsts_of, listed_segments, packed_segments

    for folder in sorted(path for path in home.streams.iterdir() if path.is_dir()) if home.streams.exists() else ():
        yield folder / "stream.json", lambda path=folder / "stream.json": read_sealed(path), REPAIR  # type: ignore[misc]
        log = folder / "log"
        own = {first: Listed(0, "") for first in firsts_of(log, OWN_SUFFIX)}
        on_disk = own | packed_segments(log)
        listed, damaged = listed_segments(log)
        missing = on_disk.keys() - listed
        newest = max(listed, default=0)
        # The newest segment may have just been committed: its line is written after it.
        if damaged or len(missing) > 1 or min(missing, default=math.inf) < newest:
            yield log / LIST, lambda path=log / LIST: _lines(path), REPAIR  # type: ignore[misc]
        files: dict[Path, list[Listed]] = {}
        for first, segment in sorted((on_disk | listed).items()):
            if segment.pack and first > newest:
                continue  # if it is not whole, it is set aside when the log is opened
            files.setdefault(Path(segment.path(str(log), first)), []).append(segment)
        for path, segments in files.items():
            yield path, lambda path=path, segments=segments: _segments(path, segments), ""  # type: ignore[misc]
        yield log, lambda log=log, found=on_disk | listed: _numbers(log, found), ""  # type: ignore[misc]
        for path in sorted(log.glob("*.cursor")):
            yield path, lambda path=path: read_sealed(path), ""  # type: ignore[misc]


def _lines(path: Path) -> None:
    raise HomeError(f"{path} has damaged or missing lines: the segments that they list were not verified")


def _numbers(log: Path, found: dict[int, Listed]) -> None:
    """Verifies that there are no gaps in the numbers: a file may be missing together with its lines."""
    from fishweir.intake.segment_list import segment_rows

    number = 1
    for first, segment in sorted(found.items()):
        if first > number:
            raise HomeError(f"{log} has no segment that begins with entry {number:,}: restore it from a backup")
        number = first + (segment.rows or segment_rows(Path(segment.path(str(log), first))))


def _segments(path: Path, segments: list[Listed]) -> None:
    """Verifies the segments of a pack, or the one of another file."""
    from fishweir.intake.packs import verify_packed

    for one in segments:
        if one.pack:
            verify_packed(path, one.offset, one.rows, one.seal)
        else:
            _sealed(path, one.seal)


def _sealed(path: Path, seal: str) -> None:
    """Verifies a seal without `verify`, which reads a file only once per process."""
    if not seal:
        import pyarrow as pa

        with reading(path):
            pa.ipc.open_file(pa.memory_map(str(path)))
    elif (now := seal_of(path)) != seal:
        length, other = seal.partition(":")[0], now.partition(":")[0]
        wrong = "checksum mismatch" if length == other else f"it has {other} bytes instead of {length}"
        raise HomeError(f"{path} is damaged ({wrong}): restore it from a backup")


def _results(home: Home) -> Iterator[Step]:
    table = ResultsTable(home.results)
    chain = _chain(table)
    done: dict[str, int] = {}
    for commit in chain:
        folder = table.folder_of(commit)
        for name, seal in commit.files.items():
            yield folder / name, lambda path=folder / name, seal=seal: _sealed(path, seal), ""  # type: ignore[misc]
            if name.startswith(("match", "probe")):
                yield folder / name, lambda path=folder / name: _names(home, table, path), ""  # type: ignore[misc]
        before, done = done, {**done, **commit.offsets}
        place = table.commits_folder / f"{commit.batch:09d}.json"
        yield place, lambda c=commit, a=before, p=place: _counts(home, c, a, p), ""  # type: ignore[misc]
    for id, upto in done.items():
        yield home.streams / id / "log", lambda id=id, upto=upto: _head_of(home, id, upto), ""  # type: ignore[misc]
    yield home.state, lambda: _states(home), ""
    yield table.commits_folder, lambda: ResultsTable(home.results).commits(), ""


def _chain(table: ResultsTable) -> list[Commit]:
    """The commits up to the point where the chain is broken, which another step reports."""
    try:
        return table.commits()
    except HomeError:
        return table.read_so_far


def _counts(home: Home, commit: Commit, before: dict[str, int], path: Path) -> None:
    slices = [(stream, before.get(stream, 0), upto) for stream, upto in commit.offsets.items()]
    entries, shed = sum(upto - after for _, after, upto in slices), sum(commit.shed.values())
    missing = entries - commit.documents - commit.aside - shed
    if missing and missing != sum(_removed_rows(home, *one) for one in slices):
        counted = f"{commit.documents:,} evaluated, {commit.aside:,} set aside and {shed:,} left out under overload"
        raise HomeError(f"{path} has inconsistent counts: {counted}, of {entries:,} entries")


def _removed_rows(home: Home, stream: str, after: int, upto: int) -> int:
    """The number of entries that record the removal of a row from a changing file: they are no documents."""
    from fishweir.intake.sources.rows import DELETED
    from fishweir.pipeline.home import open_log

    log = open_log(home.streams, int(stream))
    if log.stream.key is None:
        return 0
    return sum(batch.column("change").to_pylist().count(DELETED) for _, batch in log.read(after, upto))


def _head_of(home: Home, id: str, upto: int) -> None:
    from fishweir.pipeline.offsets import check_logs

    check_logs(home, {id: upto})


def _names(home: Home, table: ResultsTable, path: Path) -> None:
    """Verifies that the segments and query sets that result rows refer to exist."""
    from fishweir.evaluate.plan.segments import segment_path
    from fishweir.pipeline.writer import read_rows, set_path

    rows = read_rows(path, ["segment", "set"])
    places = [segment_path(home.plan, id) for id in rows.column("segment").unique().to_pylist() if id]
    places += [set_path(table.sets, name) for name in rows.column("set").unique().to_pylist() if name]
    for place in places:
        if not place.exists():
            raise HomeError(f"{place} is missing, but results in {path} refer to it: restore it from a backup")


def _states(home: Home) -> None:
    """Verifies the state that the newest commit retains. The job may commit and remove files in the meantime."""
    from fishweir.evaluate.arrays import PREFIX

    while True:
        newest = ResultsTable(home.results).newest()
        try:
            for file in newest.states:
                if seal_of(home.state / file["name"], PREFIX) != file["seal"]:
                    raise HomeError(f"{home.state / file['name']} is damaged: restore the home from a backup")
            return
        except HomeError:
            if ResultsTable(home.results).newest().batch == newest.batch:
                raise


def _plan(home: Home) -> Iterator[Step]:
    yield home.plan / "current.json", lambda: _optional(home.plan / "current.json"), REPAIR
    for path in (*sorted(home.plan.glob("segment-*.bin")), *sorted((home.results / "sets").glob("*.bin"))):
        yield path, lambda path=path: _arrays(path), ""  # type: ignore[misc]


def _arrays(path: Path) -> None:
    from fishweir.evaluate.arrays import PREFIX, arrays_seal, read_arrays

    if arrays_seal(path) != seal_of(path, PREFIX):
        raise HomeError(f"{path} is damaged (checksum mismatch): restore it from a backup")
    read_arrays(path)  # the length of its header is stored before the bytes that the checksum covers


POSITIONS = ("materialized.json", "absences.json")


def _notes(home: Home) -> Iterator[Step]:
    """Files that are rebuilt automatically, and the progress records of deliveries."""
    for path in rebuilt_by_the_job(home):
        yield path, lambda path=path: _optional(path), ANEW  # type: ignore[misc]
    for path in sorted(home.delivery.glob("*.json")):
        if path.name not in POSITIONS:
            yield path, lambda path=path: _optional(path), ""  # type: ignore[misc]


def rebuilt_by_the_job(home: Home) -> Iterator[Path]:
    """Progress records and counters, damaged or not: a run rebuilds the damaged ones."""
    yield from (home.noted, home.statistics, home.results / "commits" / "last")
    yield from (home.delivery / name for name in POSITIONS)
    for name in ("walked.json", "lateness.json", "log/snapshot.json"):
        yield from sorted(home.streams.glob(f"*/{name}"))


def _optional(path: Path) -> None:
    if path.exists():
        read_sealed(path)
