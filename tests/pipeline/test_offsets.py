"""The commits are the one truth for offsets: Spark's checkpoint may be lost, and must not be ahead."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

import fishweir
from fishweir import HomeError, testing

SCRIPT = """
create stream R (k int, x int); create stream S (k int, y int);
create query big as select x from R where x > 5 do append 'big.jsonl';
create query pairs as select R.x as x, S.y as y from R [range 1000], S [range 1000] where R.k = S.k;
"""
DAMAGES = ("nothing", "checkpoint", "newest offset", "newest commit of Spark", "half of it")


def rows(first: int) -> tuple[list[dict[str, int]], list[dict[str, int]], list[float]]:
    numbers = range(first, first + 20)
    return (
        [{"k": n % 7, "x": n % 11} for n in numbers],
        [{"k": n % 5, "y": n} for n in numbers],
        [float(n) for n in numbers],
    )


def publish(weir: fishweir.Weir, first: int) -> None:
    left, right, times = rows(first)
    weir.publish("R", left, times)
    weir.publish("S", right, times)


def found(weir: fishweir.Weir) -> Counter[tuple[str, ...]]:
    return Counter((r.query, *r.documents) for r in weir.results())


def lines(path: Path) -> Counter[str]:
    return Counter(path.read_text().splitlines())


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """What an undamaged home has in the end."""
    folder = tmp_path_factory.mktemp("undamaged")
    with pytest.MonkeyPatch.context() as patch, testing.open(folder / "home") as weir:
        patch.chdir(folder)
        weir.execute(SCRIPT)
        for first in (0, 20):
            publish(weir, first)
            weir.run(until_idle=True)
        return found(weir), lines(folder / "big.jsonl")


def damage(checkpoint: Path, how: str) -> None:
    newest = max(int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*"))
    if how == "checkpoint":
        shutil.rmtree(checkpoint)
    if how in ("newest offset", "half of it"):
        (checkpoint / "offsets" / str(newest)).unlink()
    if how in ("newest commit of Spark", "half of it"):
        (checkpoint / "commits" / str(newest)).unlink(missing_ok=True)
    if how == "half of it":
        (checkpoint / "metadata").write_text("")


@pytest.mark.parametrize("how", DAMAGES)
def test_a_lost_checkpoint_loses_and_doubles_nothing(how, tmp_path, spark, monkeypatch, wanted):
    monkeypatch.chdir(tmp_path)
    with fishweir.open("home", spark=spark, documents_per_batch=16) as weir:
        weir.execute(SCRIPT)
        publish(weir, 0)
        weir.run(until_idle=True)
        damage(weir.home.checkpoint, how)
        publish(weir, 20)
        weir.run(until_idle=True)
        assert (found(weir), lines(tmp_path / "big.jsonl")) == wanted


def test_a_home_is_taken_over_from_the_weir_without_spark(tmp_path, spark, monkeypatch, wanted):
    monkeypatch.chdir(tmp_path)
    with testing.open("home") as weir:
        weir.execute(SCRIPT)
        publish(weir, 0)
        weir.run(until_idle=True)
    with fishweir.open("home", spark=spark) as weir:
        publish(weir, 20)
        weir.run(until_idle=True)
        assert (found(weir), lines(tmp_path / "big.jsonl")) == wanted


def test_a_checkpoint_ahead_of_the_commits_stops_the_job(tmp_path, spark, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with fishweir.open("home", spark=spark, documents_per_batch=16) as weir:
        weir.execute(SCRIPT)
        publish(weir, 0)
        weir.run(until_idle=True)
        max((tmp_path / "home/results/commits").glob("*.json")).unlink()
    with fishweir.open("home", spark=spark) as weir, pytest.raises(HomeError, match="results/commits"):
        weir.run(until_idle=True)
