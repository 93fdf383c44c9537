"""The weir, an open home: registers, publishes, runs and reads.

Each call imports what it needs: a process that registers or publishes loads neither the evaluator nor Spark.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishweir.algebra.nodes import CreateQuery, CreateStream
from fishweir.catalog.catalog import Query
from fishweir.delivery.outputs.registry import Outputs
from fishweir.engine.administration import Administration, schedule_of
from fishweir.engine.background import Background
from fishweir.engine.on_spark import OnSpark
from fishweir.engine.own_catalog import counted_run, open_catalog, record_progress
from fishweir.engine.publishing import Publishing
from fishweir.engine.pushed import pushed_stream
from fishweir.errors import HomeError, QueryError
from fishweir.garbage import no_collection
from fishweir.guard import Guard
from fishweir.pipeline.commits import ResultsTable
from fishweir.pipeline.home import Home, open_log
from fishweir.pipeline.settings import DOCUMENTS_PER_BATCH, IDLE, STATE_LIMIT

if TYPE_CHECKING:
    from fishweir.delivery.service import DeliveryService
    from fishweir.engine.backfill import Backfills
    from fishweir.engine.bulk import Stored
    from fishweir.engine.planning import Planning
    from fishweir.engine.quarantine import SetAside
    from fishweir.engine.registration import Registration
    from fishweir.engine.runner import Feeder, Progress, Runner
    from fishweir.engine.status import EngineStatus, QueryStatus
    from fishweir.evaluate.plan.rebuild import Rebuilder
    from fishweir.intake import Source, StreamLog
    from fishweir.pipeline.batch import Job, MicroBatches
    from fishweir.pipeline.results import InTasks, ResultReader, Results
    from fishweir.pipeline.spark.session import DataFrame, SparkSession
    from fishweir.shedding.overload import Overload


def open(
    home: str | Path,
    spark: SparkSession | None = None,
    catalog: str | None = None,
    documents_per_batch: int = DOCUMENTS_PER_BATCH,
    strategies: Mapping[str, str] | None = None,
    state_limit: int = STATE_LIMIT,
    idle_after: float = IDLE,
    guard: bool | None = None,
    defaults: str = "",
) -> Weir:
    """Opens a home, and creates it if necessary.

    `catalog` may be an SQLAlchemy URL, `spark` a session, `strategies` published algorithms by kind, as in
    `{"selections": "sj-batch"}`. `state_limit` is the number of bytes that joins may keep for late items if no lateness
    is declared. A stream without items for `idle_after` seconds no longer delays the others. `guard` keeps statements
    away from private networks and files; None reads FISHWEIR_GUARD. `defaults` is the schedule of statements without
    one, as in "every 1 hour expire in 90 days".
    """
    given = (documents_per_batch, time.time, strategies, state_limit, idle_after, guard, defaults)
    return Weir(Path(home), spark, catalog, *given)


class Weir(Administration, Publishing, OnSpark):
    uses_threads = True
    """Whether work that the job need not wait for has its own threads."""

    def __init__(
        self,
        home: Path,
        spark: SparkSession | None = None,
        catalog: str | None = None,
        documents_per_batch: int = DOCUMENTS_PER_BATCH,
        clock: Callable[[], float] = time.time,
        strategies: Mapping[str, str] | None = None,
        state_limit: int = STATE_LIMIT,
        idle_after: float = IDLE,
        guard: bool | None = None,
        defaults: str = "",
    ) -> None:
        self.documents_per_batch, self.clock = documents_per_batch, clock
        self._defaults = schedule_of(defaults)
        self.state_limit, self.idle_after, self._opened = state_limit, idle_after, clock()
        self.home = Home(home)
        self.home.create()
        self.catalog = open_catalog(self.home, catalog)
        self._strategies = strategies
        if strategies:
            _ = self.planning  # fails early if there is no such strategy
        self.outputs = Outputs(Guard.from_setting(guard))
        self.table = ResultsTable(self.home.results)
        self.feeders: dict[str, Feeder] = {}
        self.sources: dict[str, Source] = {}
        """Sources that a program opened for streams, by name."""
        self._spark = spark
        self._runner: Runner | None = None
        self._warned: set[int] = set()
        self._background: Background | None = None
        self.overload: Overload | None = None
        """Detects whether the backlog exceeds the target latency; None if there is no target."""
        self._stopped = threading.Event()
        self._make_streams()

    # Registering

    @no_collection()
    def execute(self, script: str) -> list[str]:
        """Registers the statements of a script, all or none, and returns the names of its queries."""
        from fishweir.engine.bulk import with_first_error
        from fishweir.languages.script import parse_for_storage

        return with_first_error(self._stored, parse_for_storage(script, self.clock()))

    @no_collection()
    def register_many(self, statement: str, rows: Any, on_progress: Callable[[int], None] | None = None) -> int:
        """Registers one query or subscription per row, with the row's values for `$column`. Returns their number."""
        from fishweir.engine.many import registered

        count = 0
        with self._registration() as registration:
            for count, _ in enumerate(registered(registration, statement, rows, self.clock()), 1):
                if on_progress is not None and count % 10_000 == 0:
                    on_progress(count)
        self._make_streams()
        return count

    def register(self, query: CreateQuery) -> str:
        """Registers a query given as algebra, for kinds of queries without a language, and returns its name."""
        (name,) = self._stored([query])
        return name

    def attach(self, name: str, frame: DataFrame) -> None:
        """Feeds a stream from a streaming DataFrame; declares the stream if necessary."""
        from fishweir.intake import without_credentials
        from fishweir.pipeline.spark.feeder import Feeder, stream_of

        if name not in self.catalog.streams():
            self._stored([CreateStream(stream_of(name, frame), text=f"attached {name}")])
        id, log = self._log(name)
        if log.stream.path is not None:
            place = without_credentials(log.stream.path)
            raise QueryError(f"stream {name} reads {place}: a DataFrame cannot be attached to it")
        self.feeders[name] = Feeder(frame, log, self.home.streams / str(id) / "feeder")

    # Running

    def run(
        self,
        until_idle: bool = False,
        timeout: float | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        latency: float | None = None,
        unsubscribe_at: str | None = None,
    ) -> None:
        """Runs the job until `stop`, until `timeout` seconds have passed, or until nothing is left to do. With a target
        `latency` in seconds, it sheds under overload, if streams and queries allow it. The unsubscribe links of mails
        are answered on `unsubscribe_at`, which is `[HOST:]PORT`.
        """
        if latency is not None:
            from fishweir.shedding.overload import Overload

            self.overload = Overload(latency)
        with self.home.job_lock(), self._answering(unsubscribe_at), counted_run(self.home, self.catalog):
            stopped = self._stopped = threading.Event()
            self._prepare()
            self.catalog.verify()
            rebuilder = self._new_rebuilder()
            self._runner = self._new_runner(stopped, rebuilder)
            try:
                self._runner.run(until_idle, on_progress, timeout)
            finally:
                self._runner = None
                rebuilder.close()
            self._expire()

    def _new_runner(self, stopped: threading.Event, rebuilder: Rebuilder) -> Runner:
        from fishweir.engine.absences import Absences
        from fishweir.engine.completions import CombinedWork, Completions
        from fishweir.engine.make_up import MakeUp
        from fishweir.engine.materialize import Materializer
        from fishweir.engine.runner import Runner
        from fishweir.engine.shedding import shedder_of
        from fishweir.pipeline.batch import MicroBatches
        from fishweir.pipeline.event_time import EventTime

        newest = self.planning.newest(rebuilder, self._expire)
        materializer = Materializer(self.home, self.catalog, self.table, self._reader, self.clock)
        batches = MicroBatches(
            self.home,
            self.table,
            newest,
            materializer.published,
            self.documents_per_batch,
            self.clock,
            EventTime(self.home, self.table, self._opened, self.idle_after, self._warned),
            self.state_limit,
        )
        batches.shedder = shedder_of(self.home, self.catalog, self.overload, self._reader, self._delivery_service)
        completions = Completions(self.home, self.table, self.clock)
        absences = Absences(self.home, self.catalog, self.table, self._reader)
        batches.between = CombinedWork((self._backfills, completions, absences))
        job = self._new_job(batches)
        rebuilder.rehearse = job.rehearse
        return Runner(
            self.home,
            self.catalog,
            batches,
            job,
            self._delivery_service,
            self.feeders,
            stopped,
            materializer,
            self.sources,
            MakeUp(self.home, self.table, self.overload, self.clock),
            self.clock,
            self.outputs.guard,
            self._expire,
        )

    def _new_rebuilder(self) -> Rebuilder:
        """The rebuilder that rewrites segments while the job runs."""
        from fishweir.engine.planner_process import PlannerProcess

        return PlannerProcess(self.home.plan, self.planning.requested)

    def _new_job(self, batches: MicroBatches) -> Job:
        from fishweir.pipeline.spark.job import SparkJob
        from fishweir.pipeline.spark.jvm import start_worker_daemon

        if self._spark is None and "context" not in self.__dict__:
            start_worker_daemon()
        return SparkJob(batches, self.context, lambda: self.spark)

    def _answering(self, at: str | None) -> AbstractContextManager[object]:
        if at is None:
            return nullcontext()
        from fishweir.delivery.unsubscribing import answering

        return answering(at, self._ticket, self.unsubscribe)

    def start(self, latency: float | None = None, unsubscribe_at: str | None = None) -> None:
        """Runs the job in the background until `stop`; `latency` and `unsubscribe_at` as in `run`."""
        if self._background is not None and self._background.is_alive():
            raise HomeError(f"the job of {self.home.path} is already running")
        self._background = Background(partial(self.run, latency=latency, unsubscribe_at=unsubscribe_at))
        self._background.start()

    def wait_idle(self, timeout: float = 600.0) -> None:
        """Waits until the background job has nothing left to do. Raises the error that ended it early."""
        ends = time.monotonic() + timeout
        while time.monotonic() < ends:
            runner, background = self._runner, self._background
            if runner is not None:
                if runner.wait_idle(1.0):
                    return
            elif background is not None and background.is_alive():
                time.sleep(0.05)
            else:
                self.stop()
                raise QueryError("the job is not running")
        raise TimeoutError(f"not idle after {timeout:g} s")

    def stop(self) -> None:
        """Ends `run` from another thread, or the background job. Raises the error that made it fail."""
        self._stopped.set()
        background, self._background = self._background, None
        while background is not None and background.is_alive():
            self._stopped.set()  # again: it may have just started, with a new event
            background.join(0.05)
        if background is not None:
            background.end()

    # Reading

    def results(self, name: str | None = None) -> Results:
        """The results of a query, or of all queries, as of the time of iteration."""
        from fishweir.engine.reading import ResultSelection
        from fishweir.pipeline.results import Results

        numbers = None if name is None else tuple(sorted(self._query(name).numbers))
        selection = ResultSelection(self._reader, self.table, numbers)

        def in_tasks(needed: bool) -> InTasks | None:
            running = self._spark is not None or "spark" in self.__dict__
            return selection.in_tasks(self.spark, self.catalog) if running or needed else None

        return Results(selection.all, in_tasks)

    def set_aside(self, stream: str | None = None) -> list[SetAside]:
        """Documents that could not be evaluated, with their reasons and contents."""
        from fishweir.engine.quarantine import set_aside

        return set_aside(self.home, self.catalog, self.table, stream)

    def explain(self, name: str | None = None) -> str:
        """The group of a query, what it shares and what remains to be checked; without a name, all groups."""
        from fishweir.engine.explain import explain

        query = None if name is None else self._query(name)
        return explain(self.home, self.catalog, self.table, self.planning, query)

    def status(self, name: str | None = None) -> QueryStatus | EngineStatus:
        """The status of a query: fired counts and times, schedule, action. Without a name, that of the engine."""
        from fishweir.engine.status import engine_status, query_status
        from fishweir.engine.timeliness import missed_by

        if name is None:
            troubles = self._runner.troubles if self._runner else {}
            return engine_status(self.home, self.catalog, self.table, troubles)
        query = self._query(name)
        missed = missed_by(self.catalog, self.table, query)
        return query_status(query, self.table, lambda: self._reader, self.catalog.subscribers(name), missed)

    def close(self) -> None:
        """Stops everything that runs, including Spark if this weir started it."""
        self.stop()
        self.catalog.close()
        self._stop_spark()

    def __enter__(self) -> Weir:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Internals

    @cached_property
    def _delivery_service(self) -> DeliveryService:
        from fishweir.delivery.service import DeliveryService

        return DeliveryService(self.catalog.database, self.table, self._reader, self.outputs, self.clock)

    @cached_property
    def _backfills(self) -> Backfills:
        from fishweir.engine.backfill import Backfills

        return Backfills(self.home, self.catalog, self.table, self.uses_threads)

    @cached_property
    def planning(self) -> Planning:
        from fishweir.engine.planning import Planning

        return Planning(self.home, self.catalog, self._strategies)

    def _stored(self, statements: Iterable[Stored]) -> list[str]:
        with self._registration() as registration:
            names = registration.run(statements)
        self._make_streams()
        return names

    @contextmanager
    def _registration(self) -> Iterator[Registration]:
        """A context for changes of the catalog, all or none."""
        from fishweir.engine.registration import Registration
        from fishweir.engine.segments import written_in_bulk

        with self.catalog.change() as change, written_in_bulk(change, lambda: self.planning):
            now = self.clock()
            yield Registration(change, self.outputs, Path.cwd(), now, self._defaults(now))
        record_progress(self.home, self.catalog)

    @cached_property
    def _reader(self) -> ResultReader:
        from fishweir.engine.reading import reader_of

        return reader_of(self.home, self.catalog)

    def _query(self, name: str) -> Query:
        query = self.catalog.query(name)
        if query is None:
            raise QueryError(f"there is no query {name}")
        return query

    def _log(self, name: str) -> tuple[int, StreamLog]:
        """The log of a stream that programs may append to."""
        id, stream = pushed_stream(self.catalog, name)
        self.home.add_stream(id, stream)
        return id, open_log(self.home.streams, id)

    def _make_streams(self) -> None:
        for id, stream in self.catalog.streams().values():
            self.home.add_stream(id, stream)
