"""A weir with a home of its own for each test; one Spark session for the tests that need it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import settings

import fishweir
from fishweir import testing
from fishweir.engine.weir import Weir
from fishweir.evaluate.plan.plan import forget_plans
from fishweir.intake.log import _open_segment
from fishweir.pipeline.states import _states
from fishweir.pipeline.writer import forget_sets

DATA = Path(os.environ.get("FISHWEIR_DATA", Path(__file__).parents[2] / "shared" / "data"))

# Not timed: on a busy machine the first example alone may take seconds. The same examples in every run, so
# that what lands does not hang on a draw; `make fuzz` draws new ones.
settings.register_profile("fishweir", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("FISHWEIR_HYPOTHESIS", "fishweir"))


# Workers import kinds and conditions of the tests; a JVM may be started by any test, for all that follow.
root = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))

OPEN_FILES = Path("/proc/self/fd")

MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    # Homes are many small files. On a disk, making and removing them takes longer than most tests do otherwise.
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


class Compiled(dict[tuple[Any, ...], Any]):
    """Statements as SQLAlchemy has compiled them: each engine keeps them for itself, and each test opens a new one."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: tuple[Any, ...], value: Any) -> None:
        super().__setitem__((key[0].name, *key[1:]), value)


compiled = Compiled()


@sa.event.listens_for(sa.Engine, "engine_connect")
def share_compiled(connection: sa.Connection) -> None:
    connection.execution_options(compiled_cache=compiled)


LONGEST = (
    "pipeline/test_faults.py", "papers/experiments/test_spatialjoin_bench.py", "papers/experiments/test_mmqjp_bench.py",
    "engine/test_event_time.py", "engine/test_lateness.py", "papers/experiments/test_niagaracq_bench.py",
    "pipeline/test_exactly_once.py", "pipeline/test_offsets.py",
    "docs/test_examples.py", "engine/test_run_time.py", "engine/test_streams.py",
    "engine/test_backfill_joins.py", "engine/test_published_tuples.py",
    "papers/experiments/test_way_bench.py", "papers/experiments/test_shedding_bench.py",
    "evaluate/join/test_many_joins.py", "engine/test_many_joins.py", "evaluate/join/test_mmqjp.py",
    "evaluate/join/test_fast_joins.py", "evaluate/join/test_pattern_joins.py", "evaluate/test_selections.py",
)  # fmt: skip
"""Files that take long come first, so that no process waits for another at the end."""

SHARED_OUT = LONGEST[:6]
"""The tests of these files are shared out one by one: a whole one would keep one process busy for too long."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of a file run in one process, and all that use the Spark session: each session takes seconds to start.
    Those begin first, because they wait for Spark while other processes work."""
    here = Path(__file__).parent
    order = {here / name: place for place, name in enumerate(LONGEST)}
    split = {here / name for name in SHARED_OUT}
    items.sort(key=lambda item: (not _uses_spark(item), order.get(item.path, len(order))))
    for item in items:
        if _uses_spark(item):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.path not in split:
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(here).as_posix()))


def _uses_spark(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


LONGEST_TEST = int(os.environ.get("FISHWEIR_LONGEST_TEST", "480"))
"""Seconds after which a test has failed. What no signal interrupts is ended by faulthandler a little later."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    def out_of_time(*_: object) -> None:
        pytest.fail(f"{item.nodeid} did not end within {LONGEST_TEST} s")

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(LONGEST_TEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_collection_finish() -> None:
    """What is imported by now stays: collecting garbage, as experiments do before each measurement, passes over it."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries say what was never let go when the interpreter ends."""
    gc.unfreeze()
    if "FISHWEIR_RECORD_KERNELS" in os.environ:
        from fishweir.evaluate.precompile import record

        record()


left_open = 0
"""How many files were open after they were closed last: what cannot be closed is not tried again at each test."""


@pytest.fixture(autouse=True)
def few_open_files() -> None:
    """Files of earlier homes are mapped by what is kept per process; Spark's callbacks need numbers below 1,024."""
    global left_open
    if OPEN_FILES.exists() and len(os.listdir(OPEN_FILES)) > max(400, left_open + 100):
        forget_plans()
        forget_sets()
        for kept in (_states, _open_segment):
            kept.cache_clear()
        gc.collect()
        left_open = len(os.listdir(OPEN_FILES))


@pytest.fixture(scope="session")
def spark():  # type: ignore[no-untyped-def]
    from fishweir.pipeline.spark.session import open_session

    session = open_session("local[3]")
    yield session
    session.stop()


@pytest.fixture
def weir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Weir]:
    """A weir without Spark in an empty folder, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    with testing.open(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def spark_weir(tmp_path: Path, spark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Weir]:  # type: ignore[no-untyped-def]
    """The same on Spark, where Spark is what is tested."""
    monkeypatch.chdir(tmp_path)
    with fishweir.open(tmp_path / "home", spark=spark) as opened:
        yield opened
