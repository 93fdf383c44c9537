"""Only the commits determine the offsets: Spark's checkpoint may be lost, and must not be ahead."""

from __future__ import annotations

import pickle
import platform
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import fishweir
from fishweir import HomeError, testing
from fishweir.pipeline.batch import InlineJob
from fishweir.pipeline.spark import job
from fishweir.pipeline.stages import InlineExecutor

SCRIPT = """
create stream R (k int, x int); create stream S (k int, y int);
create query big as select x from R where x > 5 do append 'big.jsonl';
create query pairs as select R.x as x, S.y as y from R [range 1000], S [range 1000] where R.k = S.k;
"""
DAMAGES = ("nothing", "checkpoint", "newest offset", "newest commit of Spark", "half of it", "all but the first half")


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
    """The final results of an undamaged home."""
    folder = tmp_path_factory.mktemp("undamaged")
    with pytest.MonkeyPatch.context() as patch, testing.open(folder / "home") as weir:
        patch.chdir(folder)
        weir.execute(SCRIPT)
        for first in (0, 20):
            publish(weir, first)
            weir.run(until_idle=True)
        return found(weir), lines(folder / "big.jsonl")


def damage(checkpoint: Path, before: Path, how: str) -> None:
    newest = max(int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*"))
    if how in ("checkpoint", "all but the first half"):
        shutil.rmtree(checkpoint)
    if how == "all but the first half":  # behind: as before the last run
        shutil.copytree(before, checkpoint)
    if how in ("newest offset", "half of it"):
        (checkpoint / "offsets" / str(newest)).unlink()
    if how in ("newest commit of Spark", "half of it"):
        (checkpoint / "commits" / str(newest)).unlink(missing_ok=True)
    if how == "half of it":
        (checkpoint / "metadata").write_text("")


def run_as_one_that_stays(weir: fishweir.Weir) -> None:
    """Runs until idle, and until Spark's query, which writes the checkpoint, has started."""
    weir.start()
    weir.wait_idle()
    assert weir._runner is not None
    assert isinstance(weir._runner.job, job.SparkJob)
    assert weir._runner.job.framed.wait(600)
    weir.stop()


@pytest.mark.parametrize("how", DAMAGES)
def test_a_lost_checkpoint_neither_loses_nor_repeats_results(how, tmp_path, spark, monkeypatch, wanted):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job, "STAYS_ANYWAY", 0.0)
    with fishweir.open("home", spark=spark, documents_per_batch=16) as weir:
        weir.execute(SCRIPT)
        run_as_one_that_stays(weir)
        shutil.copytree(weir.home.checkpoint, tmp_path / "before")
        publish(weir, 0)
        run_as_one_that_stays(weir)
        damage(weir.home.checkpoint, tmp_path / "before", how)
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
    """Holds even if nothing else indicates that commits are missing."""
    monkeypatch.chdir(tmp_path)
    with fishweir.open("home", spark=spark, documents_per_batch=16) as weir:
        weir.execute(SCRIPT)
        publish(weir, 0)
        weir.run(until_idle=True)
    commits = tmp_path / "home/results/commits"
    max(commits.glob("*.json")).unlink()
    with fishweir.open("home", spark=spark) as weir, pytest.raises(HomeError, match="results/commits"):
        weir.run(until_idle=True)
    (commits / "last").unlink()
    with (
        fishweir.open("home", spark=spark) as weir,
        pytest.raises(HomeError, match=r"checkpoint is ahead of the commits \(stream .* delete .*checkpoint"),
    ):
        weir.run(until_idle=True)


@pytest.mark.parametrize("place", ["streams/*/log/*.pack", "state/*.state", "plan/segment-*.bin"])
def test_damage_in_the_tasks_of_spark(place, tmp_path, spark, monkeypatch, wanted):
    """The error of a worker names the file. Once the file is restored, the job continues."""
    monkeypatch.chdir(tmp_path)
    with testing.open("home") as weir:
        weir.execute(SCRIPT)
        publish(weir, 0)
        weir.run(until_idle=True)
        publish(weir, 20)
    path = max((tmp_path / "home").glob(place))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with fishweir.open("home", spark=spark) as weir:
        with pytest.raises(HomeError, match=path.name):
            weir.run(until_idle=True)
        path.write_bytes(whole)
        weir.run(until_idle=True)
        assert (found(weir), lines(tmp_path / "big.jsonl")) == wanted


ELSEWHERE = 'mount -t tmpfs none "$0" && exec "$1" -c "$2"'
CALL = "import pickle, sys; pickle.dump(pickle.load(sys.stdin.buffer)(), sys.stdout.buffer)"


class Elsewhere(InlineExecutor):
    """Runs tasks in processes that see another folder in place of one, as on a host with its own disk."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def run(self, calls):
        command = ["unshare", "-m", "sh", "-c", ELSEWHERE, str(self.folder), sys.executable, CALL]
        done = [subprocess.run(command, input=pickle.dumps(call), capture_output=True, check=True) for call in calls]
        return [pickle.loads(one.stdout) for one in done]


@pytest.mark.skipif(
    subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    ).returncode
    != 0,
    reason="only root may mount",
)
@pytest.mark.parametrize("folder", ["results", "state"])
def test_a_worker_that_does_not_see_the_drivers_files(folder, tmp_path, monkeypatch, wanted):
    monkeypatch.chdir(tmp_path)
    with testing.open("home") as weir:
        weir.execute(SCRIPT)
        publish(weir, 0)
        (tmp_path / "home" / folder).mkdir(exist_ok=True)
        with monkeypatch.context() as patch:
            patch.setattr(InlineJob, "executor", Elsewhere(tmp_path / "home" / folder), raising=False)
            patch.setattr(InlineJob, "__init__", lambda job, batches, _: setattr(job, "batches", batches))
            with pytest.raises(HomeError, match=rf"host {platform.node()} wrote .*/{folder}/.*--home"):
                weir.run(until_idle=True)
        weir.run(until_idle=True)
        publish(weir, 20)
        weir.run(until_idle=True)
        assert (found(weir), lines(tmp_path / "big.jsonl")) == wanted
