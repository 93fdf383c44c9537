"""A full disk stops writers with an error that names the file. Once space is freed, the job continues without loss."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fishweir import HomeError, testing

SCRIPT = """
create stream R (k int, x int); create stream S (k int, y int); create stream D;
create query big as select x from R where x > 5 do note;
create query pairs as select R.x as x, S.y as y from R [range 1000], S [range 1000] where R.k = S.k and R.x > 2;
create query blogs as D//blog[title->t][author->a] FOLLOWED BY{a = a2, 1000} D//blog[title->t2][author->a2];
"""
Found = Counter[Any]


class Desk:
    """A weir and its delivered results."""

    def __init__(self, home: Path) -> None:
        self.delivered: Found = Counter()
        self.weir = testing.open(home, documents_per_batch=20)
        self.weir.action("note", lambda result: self.delivered.update([(result.query, *result.documents)]))

    def publish(self, first: int) -> None:
        numbers = range(first, first + 12)
        times = [float(n) for n in numbers]
        self.weir.publish("R", [{"k": n % 5, "x": n % 11} for n in numbers], times)
        self.weir.publish("S", [{"k": n % 3, "y": n} for n in numbers], times)
        self.weir.publish("D", [f"<blog><title>{n}</title><author>{n % 4}</author></blog>" for n in numbers], times)

    def results(self) -> Found:
        return Counter((r.query, *r.documents) for r in self.weir.results())


@contextmanager
def opened(home: Path) -> Iterator[Desk]:
    desk = Desk(home)
    try:
        yield desk
    finally:
        desk.weir.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with evaluated documents and waiting ones."""
    home = tmp_path_factory.mktemp("full") / "home"
    with opened(home) as desk:
        desk.weir.execute(SCRIPT)
        for first in (0, 12):
            desk.publish(first)
            desk.weir.run(until_idle=True)
        desk.publish(24)
    return home


@pytest.fixture(scope="module")
def right(template: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Found, Found]:
    """The results and deliveries of an undamaged home."""
    home = tmp_path_factory.mktemp("undamaged") / "home"
    shutil.copytree(template, home)
    with opened(home) as desk:
        desk.publish(36)
        desk.weir.run(until_idle=True)
        return desk.results(), desk.delivered


@contextmanager
def limited(bytes: int) -> Iterator[None]:
    """Limits the size of files, which affects writers like a full file system."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 50, 400, 1500, 4000])
def test_a_temporary_limit(size: int, template: Path, right: tuple[Found, Found], tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(template, home)
    with opened(home) as desk:
        with limited(size), suppress(HomeError):  # or delivery waits for space until the timeout
            desk.weir.run(until_idle=True, timeout=60.0)
        assert desk.results() <= right[0]
        desk.publish(36)
        desk.weir.run(until_idle=True)
        assert (desk.results(), desk.delivered) == right


def test_publishing_and_registering(template: Path, right: tuple[Found, Found], tmp_path: Path) -> None:
    """Refused documents and queries do not exist afterwards, and the log continues."""
    home = tmp_path / "home"
    shutil.copytree(template, home)
    with opened(home) as desk:
        for size in (100, 1_000):  # the list of segments does not fit, or is the only file that does
            with limited(size), pytest.raises(HomeError, match="streams/1/log"):
                desk.publish(36)
        with limited(100), pytest.raises(HomeError, match=r"catalog\.db"):
            desk.weir.execute("create query more as select x from R where x = 1")
        assert "more" not in desk.weir.catalog.names()
        desk.publish(36)
        desk.weir.run(until_idle=True)
        assert desk.results() == right[0]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a file system can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("free", [0, 4096, 20_000])
def test_a_small_file_system(free: int, small_disk: Path, template: Path, right: tuple[Found, Found]) -> None:
    home, filler = small_disk / "home", small_disk / "filler"
    shutil.copytree(template, home)
    with opened(home) as desk:
        filler.write_bytes(bytes(max(0, shutil.disk_usage(small_disk).free - free)))
        said = ""
        try:
            desk.weir.run(until_idle=True, timeout=60.0)
            desk.publish(24)
        except HomeError as error:
            said = str(error)
        assert str(home) in said
        assert "space" in said
        assert desk.results() <= right[0]
        filler.unlink()
        desk.publish(36)
        desk.weir.run(until_idle=True)
        assert (desk.results(), desk.delivered) == right
