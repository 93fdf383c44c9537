"""A table of faults: whatever happens to a file of a home, the results are correct or an error names the file.

Each kind of file is damaged in each way, at rest and in the middle of a micro-batch. Then documents are published, the
job runs, results and status are read, and results are delivered. No result is ever missing or duplicated without a
message.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

import fishweir
from fishweir import HomeError
from fishweir.pipeline.stages import InlineExecutor
from tests.delivery.servers import Hooks, Mailbox, hook_server, mail_server
from tests.pipeline.damage import Desk, Place, build, forget, opened, without_privileges

KINDS = {
    "home": "home.json",
    "catalog": "catalog.db",
    "catalog's newest changes": "catalog.db-wal",
    "catalog's index of them": "catalog.db-shm",
    "note of the catalog": "catalog.json",
    "lock of the job": "job.lock",
    "arrivals": "arrivals",
    "definition of a stream": "streams/1/stream.json",
    "evaluated segment": "streams/1/log/000000000000001.pack",
    "waiting segment": "streams/1/log/000000000000013.arrow",
    "waiting documents": "streams/3/log/000000000000015.arrow",
    "pack with waiting documents": "streams/2/log/*.pack",
    "published documents": "streams/1[01]/log/*.pack",
    "rows of a changing file": "streams/7/log/*.pack",
    "list of segments": "streams/1/log/segments.list",
    "snapshot of a changing file": "streams/7/log/snapshot.json",
    "progress without entries": "streams/*/log/*.cursor",
    "lateness": "streams/*/lateness.json",
    "counters": "streams/*/walked.json",
    "statistics": "statistics.json",
    "plan": "plan/current.json",
    "segment of the plan": "plan/segment-*.bin",
    "first commit": "results/commits/000000000.json",
    "middle commit": "results/commits/000000002.json",
    "newest commit": "results/commits/0*.json",
    "last": "results/commits/last",
    "selections": "results/*/match-*.arrow",
    "pairs": "results/*/probe-*.arrow",
    "set aside": "results/*/aside-*.arrow",
    "sets": "results/sets/*.bin",
    "state": "state/*.state",
    "published so far": "delivery/materialized.json",
}


@pytest.fixture(scope="module")
def hooks() -> Iterator[Hooks]:
    with hook_server() as server:
        yield server


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with mail_server() as (box, place), pytest.MonkeyPatch.context() as patch:
        patch.setenv("FISHWEIR_SMTP", f"smtp://{place}")
        yield box


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, hooks: Hooks, mailbox: Mailbox) -> Place:
    place = Place(tmp_path_factory.mktemp("faults"), hooks, mailbox)
    with pytest.MonkeyPatch.context() as patch:
        build(place, patch)
    return place


@pytest.fixture(scope="module")
def right(built: Place) -> dict[str, Any]:
    """The output of an undamaged home, before and after it runs."""
    with pytest.MonkeyPatch.context() as patch:
        built.fresh(patch)
        with opened(built.folder) as desk:
            before, status = desk.results(), desk.status()
            desk.round(3)
            desk.run()
            assert 0 < before.total() < desk.results().total()
            done = {"results": desk.results(), "status": desk.status(), **built.sent(desk)}
    assert all(done.values())
    return {"before": before, "status before": status, **done}


@pytest.fixture
def place(built: Place, monkeypatch: pytest.MonkeyPatch, right: dict[str, Any]) -> Iterator[Place]:
    """A copy of the home in its original location: its sources and targets are beside it."""
    built.fresh(monkeypatch)
    with without_privileges():
        yield built


def deleted(path: Path, _: Path) -> None:
    path.unlink()


def emptied(path: Path, _: Path) -> None:
    path.write_bytes(b"")


def cut_off(path: Path, _: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flipped(share: float) -> Callable[[Path, Path], None]:
    def flip(path: Path, _: Path) -> None:
        content = bytearray(path.read_bytes())
        if content:
            content[int(share * len(content))] ^= 0x10
        path.write_bytes(bytes(content))

    flip.__name__ = f"flipped at {share}"
    return flip


def forbidden(path: Path, _: Path) -> None:
    path.chmod(0)
    with pytest.raises(PermissionError):
        path.open("rb")


def older(path: Path, before: Path) -> None:
    if not before.exists() or before.read_bytes() == path.read_bytes():
        pytest.skip("it is not older")
    shutil.copy(before, path)


FLIPS = [flipped(share) for share in (0.02, 0.45, 0.98)]
DAMAGES = [deleted, emptied, cut_off, FLIPS[1], forbidden]


def damaged(place: Place, kind: str, damage: Callable[[Path, Path], None]) -> Path:
    path = max((place.folder / "home").glob(KINDS[kind]), default=None)
    assert path is not None, f"the home has no {kind}"
    damage(path, place.older / path.relative_to(place.folder))
    return path


def named(path: Path, message: str) -> bool:
    """Whether a message names the file: itself, its folder, or the catalog for SQLite's additional files."""
    return path.name.removesuffix("-wal").removesuffix("-shm") in message or f"{path.parent} " in message


class Attempts:
    """Calls that may raise only a HomeError that names a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.errors: list[str] = []

    def __call__(self, call: Callable[[], Any]) -> Any:
        said = None
        try:
            return call()
        except HomeError as error:
            said = str(error)
        self.errors.append(said)
        assert named(self.path, said), said
        assert ": " in said, "the message says what to do"
        return None


def test_every_kind_of_file_is_in_the_table(place: Place) -> None:
    home = place.folder / "home"
    files = [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]
    kinds = [kind.replace("/1/", "/*/").replace("/3/", "/*/").replace("/7/", "/*/") for kind in KINDS.values()]
    assert [name for name in files if not any(fnmatch(name, kind) for kind in kinds)] == []


@pytest.mark.parametrize("damage", [*DAMAGES, older], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_damage_at_rest(
    kind: str,
    damage: Callable[[Path, Path], None],
    place: Place,
    right: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = damaged(place, kind, damage)
    attempt = Attempts(path)
    desk = attempt(lambda: Desk(place.folder))
    if desk is not None:
        assert attempt(desk.results) in (None, right["before"])
        assert attempt(desk.status) in (None, right["status before"])
        published = attempt(lambda: desk.round(3) or True)
        ran = attempt(lambda: desk.run() or True)
        if published and ran:
            assert attempt(desk.results) in (None, right["results"])
            assert attempt(desk.status) in (None, right["status"])
        else:
            found = attempt(desk.results)
            assert found is None or found <= right["results"]
        for what, sent in place.sent(desk).items():
            said = attempt.errors or named(path, caplog.text)
            assert sent == right[what] or (said and sent <= right[what]), what
        desk.weir.close()


@pytest.mark.parametrize("damage", [emptied, *FLIPS], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith(("catalog", "lock", "arrivals"))])
def test_check_finds_the_damage(kind: str, damage: Callable[[Path, Path], None], place: Place) -> None:
    path = damaged(place, kind, damage)
    findings = fishweir.check(place.folder / "home").findings
    assert [finding for finding in findings if named(path, str(finding))]


NEW = ("selections", "state", "pairs")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", NEW)
def test_damage_to_task_output(
    kind: str,
    damage: Callable[[Path, Path], None],
    place: Place,
    right: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a task's output is missing or damaged before the commit, nothing is committed, and the next run repairs it."""
    home = place.folder / "home"
    before, run, hit = set(home.rglob("*")), InlineExecutor.run, list[Path]()

    def damaging(self: InlineExecutor, calls: Any) -> Any:
        done = list(run(self, calls))
        new = [path for path in home.glob(KINDS[kind]) if path not in before]
        if new and not hit:
            hit.append(max(new))
            damage(hit[0], hit[0])
        return done

    with opened(place.folder) as desk:
        desk.round(3)
        with monkeypatch.context() as patch:
            patch.setattr(InlineExecutor, "run", damaging)
            with pytest.raises(HomeError) as raised:
                desk.run()
        assert hit[0].name in str(raised.value)
        assert "--home" in str(raised.value), "the message names the setting"
        desk.run()
        assert (desk.results(), place.sent(desk)["delivered"]) == (right["results"], right["delivered"])


RUNNING = (
    "definition of a stream", "evaluated segment", "waiting segment", "list of segments", "lateness", "plan",
    "segment of the plan", "middle commit", "newest commit", "selections", "pairs", "sets", "state",
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", RUNNING)
def test_damage_during_a_micro_batch(
    kind: str,
    damage: Callable[[Path, Path], None],
    place: Place,
    right: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file is damaged between two tasks, while it may be mapped. Once it is restored, the job continues."""
    path = max((place.folder / "home").glob(KINDS[kind]))
    kept, run, hit = place.folder / "kept", InlineExecutor.run, list[Path]()
    shutil.copy2(path, kept)

    def damaging(self: InlineExecutor, calls: Any) -> Any:
        done = list(run(self, calls))
        if not hit:
            hit.append(path)
            damage(path, path)
        return done

    attempt = Attempts(path)
    with opened(place.folder) as desk:
        assert desk.results() == right["before"]
        desk.round(3)
        with monkeypatch.context() as patch:
            patch.setattr(InlineExecutor, "run", damaging)
            ran = attempt(lambda: desk.run() or True)
        found = attempt(desk.results)
        assert hit
        assert found is None or (found == right["results"] if ran else found <= right["results"])
        if attempt.errors:
            path.unlink(missing_ok=True)
            shutil.copy2(kept, path)
            forget()
            desk.run()
            assert (desk.results(), desk.status()) == (right["results"], right["status"])
        assert place.sent(desk) == {what: right[what] for what in place.sent(desk)}
