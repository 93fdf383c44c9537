"""A weir with its own home for each test; one Spark session for the tests that need it."""

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
from hypothesis import settings

import fishweir
from fishweir import testing
from fishweir.catalog.sqlite import SqliteConnection
from fishweir.engine.weir import Weir
from fishweir.evaluate.plan.plan import forget_plans
from fishweir.intake.segment_files import open_segment
from fishweir.pipeline.states import forget_states
from fishweir.pipeline.writer import forget_sets

DATA = Path(os.environ.get("FISHWEIR_DATA", Path(__file__).parents[2] / "shared" / "data"))

# No deadline: on a busy machine, the first example alone may take seconds. Every run uses the same examples, so that no
# merge depends on a random draw; `make fuzz` draws new ones.
settings.register_profile("fishweir", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("FISHWEIR_HYPOTHESIS", "fishweir"))


# Workers import kinds and conditions of the tests. Any test may start the JVM for all tests that follow.
root = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))

OPEN_FILES = Path("/proc/self/fd")

MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    # Homes are many small files. On a disk, creating and removing them takes longer than most tests.
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


LONGEST = (
    "pipeline/test_faults.py", "papers/experiments/test_spatialjoin_bench.py", "papers/experiments/test_mmqjp_bench.py",
    "engine/test_event_time.py", "engine/test_lateness.py", "papers/experiments/test_niagaracq_bench.py",
    "pipeline/test_exactly_once.py", "pipeline/test_offsets.py",
    "docs/test_examples.py", "engine/test_run_time.py", "engine/test_streams.py",
    "engine/test_backfill_joins.py", "engine/test_published_tuples.py",
    "papers/experiments/test_way_bench.py", "papers/experiments/test_shedding_bench.py",
    "evaluate/join/test_theta_joins.py", "evaluate/test_selections.py", "evaluate/join/test_mmqjp.py",
    "papers/strategies/test_joins.py", "evaluate/join/test_many_joins.py", "intake/test_feed_docs.py",
    "test_extension.py", "engine/test_many_joins.py", "evaluate/test_match.py", "evaluate/join/test_fast_joins.py",
    "test_extension_kind.py", "catalog/test_catalog.py", "delivery/test_kill.py", "evaluate/join/test_pattern_joins.py",
    "languages/test_language_sql_meaning.py", "papers/strategies/test_window_joins.py", "engine/test_compiled.py",
    "evaluate/join/test_annotations.py", "engine/test_niagaracq_joins.py",
)  # fmt: skip
"""Slow files come first, so that no process waits for another at the end."""

SHARED_OUT = LONGEST[:6]
"""The tests of these files are distributed individually: a whole file would keep one process busy for too long."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs all tests of a file in one process, and all that use the Spark session: each session takes seconds to start.
    The latter begin first, because they wait for Spark while other processes work.
    """
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
"""Seconds after which a test fails. If no signal can interrupt it, faulthandler ends it a little later."""


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
    """Freezes the imported objects, so that garbage collections, as experiments do before measurements, skip them, and
    collects less often: random documents and queries are many small objects without cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_unconfigure() -> None:
    """Unfreezes the objects, since libraries report objects that were never released at interpreter exit."""
    gc.unfreeze()
    if "FISHWEIR_RECORD_KERNELS" in os.environ:
        from fishweir.evaluate.precompile import record

        record()


left_open = 0
"""The number of files still open after the last cleanup: files that cannot be closed are not tried again each time."""


@pytest.fixture(autouse=True)
def few_open_files() -> None:
    """Closes mapped files of earlier homes that the process caches: Spark's callbacks need descriptors below 1,024."""
    global left_open
    if OPEN_FILES.exists() and len(os.listdir(OPEN_FILES)) > max(400, left_open + 100):
        forget_plans()
        forget_sets()
        forget_states()
        open_segment.cache_clear()
        gc.collect()
        left_open = len(os.listdir(OPEN_FILES))


FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for queries over a few rows: to generate and compile code for each of them takes longer than to run it."""


@pytest.fixture(scope="session")
def spark():  # type: ignore[no-untyped-def]
    from fishweir.pipeline.spark.session import open_session

    session = open_session("local[3]")
    for name, value in FEW_ROWS.items():
        session.conf.set(name, value)
    yield session
    session.stop()


@pytest.fixture
def weir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Weir]:
    """A weir without Spark in an empty folder, which is also the current folder."""
    monkeypatch.chdir(tmp_path)
    with testing.open(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def spark_weir(tmp_path: Path, spark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Weir]:  # type: ignore[no-untyped-def]
    """The same on Spark, for tests of Spark itself."""
    monkeypatch.chdir(tmp_path)
    with fishweir.open(tmp_path / "home", spark=spark) as opened:
        yield opened


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The values of the statements that the catalog executes in a test, in order."""
    seen: list[dict[str, Any]] = []
    execute = SqliteConnection.execute

    def recorded(self: SqliteConnection, statement: str, **values: Any) -> Any:
        seen.append(values)
        return execute(self, statement, **values)

    monkeypatch.setattr(SqliteConnection, "execute", recorded)
    return seen
