"""`check` and `repair`: what is damaged is found, what can be rebuilt is, and nothing is deleted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import fishweir
from fishweir import HomeError, testing
from fishweir.sealed import write_json

SCRIPT = """
create stream R (k int, x int);
create query big as select x from R where x > 2;
create query pairs as select A.x as x, B.x as y from R [range 100] as A, R [range 100] as B
    where A.k = B.k and A.x < B.x;
"""


def published(home: Path, first: int) -> Counter[tuple[str, ...]]:
    with testing.open(home) as weir:
        weir.execute(SCRIPT)
        weir.publish("R", [{"k": n % 3, "x": n} for n in range(first, first + 9)], [float(n) for n in range(9)])
        weir.run(until_idle=True)
        return Counter((r.query, *r.documents) for r in weir.results())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    published(tmp_path / "home", 0)
    published(tmp_path / "home", 9)
    return tmp_path / "home"


def test_a_whole_home(home: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = fishweir.check(home, lambda done, total: seen.append((done, total)))
    assert report.findings == ()
    assert report.files > 10
    assert seen[-1][0] == seen[-1][1] == report.bytes


REBUILT = ("home.json", "streams/1/stream.json", "streams/1/log/segments.list", "statistics.json")


@pytest.mark.parametrize("name", REBUILT)
def test_what_is_rebuilt(home: Path, name: str) -> None:
    content = bytearray((home / name).read_bytes())
    content[len(content) // 2] ^= 4
    (home / name).write_bytes(content)
    assert Path(name).name in [finding.path.name for finding in fishweir.check(home).findings]
    assert fishweir.repair(home).left.is_whole
    assert any((home / "damaged").iterdir())
    assert published(home, 18)


def test_what_is_lost_for_good(home: Path) -> None:
    path = max(home.glob("results/*/match-*.parquet"))
    path.unlink()
    left = fishweir.repair(home).left
    assert [finding.path for finding in left.findings if str(path) in str(finding)]
    with testing.open(home) as weir, pytest.raises(HomeError, match=path.name):
        list(weir.results())


def test_the_newest_micro_batch_is_given_up_where_told(home: Path, tmp_path: Path) -> None:
    wanted = published(tmp_path / "other", 0) and published(tmp_path / "other", 9)
    path = max(home.glob("results/commits/0*.json"))
    path.write_bytes(b"")
    assert not fishweir.repair(home).left.is_whole
    assert fishweir.repair(home, discard=True).left.is_whole
    with testing.open(home) as weir:
        weir.run(until_idle=True)
        assert Counter((r.query, *r.documents) for r in weir.results()) == wanted


def test_another_format_and_another_catalog_are_refused(home: Path, tmp_path: Path) -> None:
    published(tmp_path / "other", 0)
    (home / "catalog.db").write_bytes((tmp_path / "other" / "catalog.db").read_bytes())
    with pytest.raises(HomeError, match="another home"):
        testing.open(home)
    (home / "catalog.db").unlink()
    with pytest.raises(HomeError, match="is missing or empty"):
        testing.open(home)
    write_json(tmp_path / "other" / "home.json", {"format": 99, "id": "x"})
    with pytest.raises(HomeError, match="format 99"):
        testing.open(tmp_path / "other")
