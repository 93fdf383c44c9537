"""Parts of the experiment: what is measured together, one module per part.

A part is a function from a setting to its measurements. Its figures are frozen dataclasses of one class, which the part
defines: their fields are the columns of its table.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.processor import Stopwatch
from fishweir.papers.way.work import STREAM, Work
from fishweir.pipeline.offsets import heads

FISHWEIR, FROM_TABLES = "Fishweir", "Fishweir, from Arrow tables"
WARM = 5
"""Number of micro-batches that are not measured."""
IDLE, LOOK, PATIENCE = 0.1, 1.0, 300.0
"""The processor time per second below which all processes count as idle, for how many seconds this is observed, and the
longest wait for it."""


@dataclass
class Setting:
    """Shared data of the parts. The first part that needs a Spark session starts it."""

    quick: bool = False
    say: Callable[[str], None] = lambda _: None
    """Shows the progress."""
    session: Any = None
    sizes: dict[str, Any] = field(default_factory=dict)
    """Sizes that replace those of a part, for tests."""

    @cached_property
    def spark(self) -> Any:
        from fishweir.pipeline.spark.session import open_session

        return self.session or open_session()

    def close(self) -> None:
        if self.session is None and "spark" in self.__dict__:
            self.spark.stop()

    def sizes_of(self, part: str, whole: Any, quick: Any) -> Any:
        return self.sizes.get(part, quick if self.quick else whole)


@dataclass
class Measured:
    """The measurements of a part."""

    figures: list[Any] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Remarks, such as contestants that were omitted."""


@dataclass(frozen=True)
class Part:
    name: str
    title: str
    measure: Callable[[Setting], Measured]
    draw: Callable[[Sequence[Any], Path], None] | None = None


@contextmanager
def home_folder() -> Iterator[Path]:
    """A new folder. It is not removed until all parts have ended (run.py)."""
    yield Path(tempfile.mkdtemp(prefix="fishweir-bench-")) / "home"


@contextmanager
def running(
    spark: Any, work: Work, queries: int, size: int, first: int | None = None, **actions: Any
) -> Iterator[Weir]:
    """A home with its queries, or with the first of them, whose job runs in the background. With an action, all
    queries have it."""
    with home_folder() as folder, Weir(folder, spark, documents_per_batch=size) as weir:
        weir.execute(work.stream)
        template = work.template
        for name, factory in actions.items():
            weir.register_action(name, factory)
            template += f" do {name}"
        if work.statements:
            weir.execute("".join(work.template.format(**row) for row in work.rows(queries)))
        else:
            weir.register_many(template, work.rows(queries)[:first])
        weir.start()
        for seed in range(WARM):
            weir.publish(STREAM, work.documents(1, seed))
            weir.wait_idle()
        settle(weir)
        yield weir


def settle(weir: Weir) -> None:
    """Waits until Spark has started the query that represents the job, which takes seconds on a new JVM, and until the
    background has merged the plan."""
    job: Any = weir._runner.job if weir._runner else None
    if job is not None:
        job.framed.wait(60)
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        watch = Stopwatch()
        time.sleep(LOOK)
        if watch.spent().processor < IDLE * LOOK:
            return


def wait_for(weir: Weir, wanted: int | None = None) -> None:
    """Waits until everything published is committed; `wanted` is the number of entries in all logs, if it is known. The
    logs are read at most once, and a commit ends the wait, so that the waiting does not affect the measurement of a
    micro-batch: looking every 2 ms took up to 0.9 ms of it."""
    runner = weir._runner
    assert runner is not None
    wanted = sum(heads(weir.home).values()) if wanted is None else wanted
    batches, committed = runner.batches, threading.Event()
    then = batches.on_commit

    def on_commit() -> None:
        then()
        committed.set()

    batches.on_commit = on_commit
    try:
        while sum(list(batches.offsets.values())) < wanted:
            committed.wait(LOOK)
            committed.clear()
    finally:
        batches.on_commit = then
