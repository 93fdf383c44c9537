"""Faults, as a table: whatever happens to a file of a home, there are the right results or an error that names it.

Each kind of file is damaged in each way, at rest and in the middle of a micro-batch; then documents are published, the
job runs, results and status are read, and results are delivered. There are never fewer or more without a message.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fishweir import HomeError, testing
from fishweir.pipeline.batch import InlineExecutor

SCRIPT = """
create stream R (k int, x int); create stream S (k int, y int); create stream D;
create query big as select x from R where x > 5 do note;
create query pairs as select R.x as x, S.y as y from R [range 1000], S [range 1000] where R.k = S.k and R.x > 2;
create query blogs as D//blog[title->t][author->a] FOLLOWED BY{a = a2, 1000} D//blog[title->t2][author->a2];
"""
Found = Counter[tuple[Any, ...]]


def publish(weir: testing.Weir, first: int) -> None:
    numbers = range(first, first + 12)
    times = [float(n) for n in numbers]
    weir.publish("R", [{"k": n % 5, "x": n % 11} for n in numbers], times)
    weir.publish("S", [{"k": n % 3, "y": n} for n in numbers], times)
    texts = [f"<blog><title>{n}</title><author>{n % 4}</author></blog>" for n in numbers]
    weir.publish("D", [*texts, "<broken>"], [*times, times[-1]])


def results(weir: testing.Weir) -> Found:
    return Counter((r.query, *r.documents) for r in weir.results())


class Desk:
    """A weir and what it delivered."""

    def __init__(self, home: Path) -> None:
        self.delivered: Found = Counter()
        self.weir = testing.open(home, documents_per_batch=20)
        self.weir.action("note", lambda result: self.delivered.update([(result.query, *result.documents)]))

    def numbers(self) -> tuple[int, ...]:
        status = self.weir.status()
        return status.documents, status.set_aside, *(s.arrived for s in status.streams.values())


@contextmanager
def opened(home: Path) -> Iterator[Desk]:
    desk = Desk(home)
    try:
        yield desk
    finally:
        desk.weir.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which something was evaluated and something waits."""
    home = tmp_path_factory.mktemp("faults") / "home"
    with opened(home) as desk:
        desk.weir.execute(SCRIPT)
        for first in (0, 12):
            publish(desk.weir, first)
            desk.weir.run(until_idle=True)
        publish(desk.weir, 24)
    return home


@pytest.fixture(scope="module")
def right(template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an undamaged home says, before and after it runs."""
    home = tmp_path_factory.mktemp("undamaged") / "home"
    shutil.copytree(template, home)
    with opened(home) as desk:
        before, status = results(desk.weir), desk.numbers()
        publish(desk.weir, 36)
        desk.weir.run(until_idle=True)
        assert 0 < len(before) < len(results(desk.weir))
        assert desk.delivered
        return {
            "before": before, "status before": status, "results": results(desk.weir), "status": desk.numbers(),
            "delivered": desk.delivered,
        }  # fmt: skip


KINDS = {
    "home": "home.json",
    "catalog": "catalog.db",
    "definition of a stream": "streams/1/stream.json",
    "evaluated segment": "streams/1/log/000000000000001.arrow",
    "waiting segment": "streams/1/log/000000000000025.arrow",
    "waiting documents": "streams/3/log/000000000000027.arrow",
    "list of segments": "streams/1/log/segments.list",
    "lateness": "streams/1/lateness.json",
    "counters": "streams/3/walked.json",
    "statistics": "statistics.json",
    "plan": "plan/current.json",
    "segment of the plan": "plan/segment-*.bin",
    "first commit": "results/commits/000000000.json",
    "middle commit": "results/commits/000000002.json",
    "newest commit": "results/commits/0*.json",
    "last": "results/commits/last",
    "selections": "results/*/match-*.parquet",
    "pairs": "results/*/probe-*.parquet",
    "set aside": "results/*/aside-*.parquet",
    "sets": "results/sets/*.bin",
    "state": "state/*.state",
}


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in range(min(20, len(content) - 1), len(content), max(1, len(content) // 7)):
        content[place] ^= 0x10
    path.write_bytes(bytes(content))


def unreadable(path: Path) -> None:
    """Also for root, who may read everything."""
    path.unlink()
    path.symlink_to(path)


def forbidden(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path.chmod(0)


DAMAGES: list[Callable[[Path], None]] = [Path.unlink, emptied, cut_off, flipped, unreadable, forbidden]


def damaged(home: Path, kind: str, damage: Callable[[Path], None]) -> Path:
    path = max(home.glob(KINDS[kind]), default=None)
    assert path is not None, f"the home has no {kind}"
    damage(path)
    return path


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_at_rest(
    kind: str, damage: Callable[[Path], None], template: Path, right: dict[str, Any], tmp_path: Path
) -> None:
    if kind == "catalog" and damage is flipped:
        pytest.skip("SQLite has no checksums: what a flipped bit of the catalog does depends on where it is")
    home = tmp_path / "home"
    shutil.copytree(template, home)
    path = damaged(home, kind, damage)
    errors: list[str] = []

    def attempt(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except HomeError as error:
            errors.append(str(error))
            return None

    desk = attempt(lambda: Desk(home))
    if desk is not None:
        assert attempt(lambda: results(desk.weir)) in (None, right["before"])
        assert attempt(desk.numbers) in (None, right["status before"])
        published = len(errors)
        attempt(lambda: publish(desk.weir, 36))
        published = len(errors) == published
        attempt(lambda: desk.weir.run(until_idle=True))
        if not errors and published:
            assert (results(desk.weir), desk.numbers()) == (right["results"], right["status"])
            assert desk.delivered == right["delivered"]
        else:
            found = attempt(lambda: results(desk.weir))
            assert found is None or found <= right["results"]
            assert desk.delivered <= right["delivered"]
        desk.weir.close()
    for message in errors:
        assert path.name in message or f"{path.parent} " in message, message


IN_THE_MIDDLE = ("selections", "state", "pairs")


@pytest.mark.parametrize("damage", [d for d in DAMAGES if d is not forbidden], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", IN_THE_MIDDLE)
def test_in_the_middle(
    kind: str, damage: Callable[[Path], None], template: Path, right: dict[str, Any], tmp_path: Path, monkeypatch: Any
) -> None:
    """What a task wrote is gone or damaged before the commit: there is none, and the next run makes it good."""
    home = tmp_path / "home"
    shutil.copytree(template, home)
    before = set(home.rglob("*"))
    run, hit = InlineExecutor.run, []

    def damaging(self: InlineExecutor, calls: Any) -> Any:
        done = list(run(self, calls))
        new = [path for path in home.glob(KINDS[kind]) if path not in before]
        if new and not hit:
            hit.append(max(new))
            damage(hit[0])
        return done

    with opened(home) as desk:
        publish(desk.weir, 36)
        with monkeypatch.context() as patch:
            patch.setattr(InlineExecutor, "run", damaging)
            with pytest.raises(HomeError) as raised:
                desk.weir.run(until_idle=True)
        assert hit[0].name in str(raised.value)
        assert "--home" in str(raised.value), "the message names the setting"
        if hit[0].is_symlink():
            hit[0].unlink()
        desk.weir.run(until_idle=True)
        assert (results(desk.weir), desk.delivered) == (right["results"], right["delivered"])


@contextmanager
def full(bytes: int) -> Iterator[None]:
    """No file can grow beyond so many bytes: what a full file system does to those who write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 50, 400, 1500, 4000])
def test_a_full_disk_that_is_freed_again(size: int, template: Path, right: dict[str, Any], tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(template, home)
    with opened(home) as desk:
        with full(size), suppress(HomeError):  # or delivery waits for space, for as long as it may
            desk.weir.run(until_idle=True, timeout=3.0)
        assert results(desk.weir) <= right["results"]
        publish(desk.weir, 36)
        desk.weir.run(until_idle=True)
        assert (results(desk.weir), desk.numbers()) == (right["results"], right["status"])
        assert desk.delivered == right["delivered"]


def test_publishing_on_a_full_disk(template: Path, right: dict[str, Any], tmp_path: Path) -> None:
    """What is refused is not there, and the log goes on."""
    home = tmp_path / "home"
    shutil.copytree(template, home)
    with opened(home) as desk:
        with full(100), pytest.raises(HomeError, match="streams/1/log"):
            publish(desk.weir, 36)
        publish(desk.weir, 36)
        desk.weir.run(until_idle=True)
        assert results(desk.weir) == right["results"]
