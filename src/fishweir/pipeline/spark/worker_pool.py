"""The worker pool: long-running tasks of one Spark job that execute the calls of many micro-batches for the driver.

A Spark job costs tens of milliseconds, a Spark SQL query hundreds, whatever it computes. Tasks are therefore started
once and kept running: each connects back to the driver and answers one call after another, with plan and kernels warm.
Spark places the tasks, starts their Python processes and notices when one dies. Then the pool is lost, and the next
call starts a new one. Connections are authenticated with a key that only the tasks know.

Each task has a second connection, for rehearsals (rehearsal.py): a thread of the task runs them concurrently with its
calls, so that a new segment is warm before a micro-batch needs it.

The pool occupies all slots of the session but one, which is left to other Spark jobs. If there is only one slot, the
pool is released when it is idle and at regular intervals.
"""

from __future__ import annotations

import os
import pickle
import secrets
import socket
import threading
import time
import traceback
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, wait

from pyspark import InheritableThread, SparkContext

from fishweir.pipeline.rehearsal import Rehearsal
from fishweir.pipeline.spark.extensions import Extensions
from fishweir.pipeline.stages import Call
from fishweir.pipeline.summary import Summary
from fishweir.records import dataclass

MAX_EXCLUSIVE_TIME = 1.0
"""Seconds for which the pool holds the only slot while others may be waiting for it."""
SHUTDOWN_TIMEOUT = 2.0
"""Seconds that tasks have to finish their calls when the pool is shut down."""
REHEARSAL_TIMEOUT = 60.0
"""Seconds after which a segment is adopted although a task has not answered."""
CALLS, REHEARSALS = b"calls", b"rehearsals"
"""The purpose of a connection, which is its first message."""


class WorkerPoolLost(Exception):
    """A task died, or the worker pool was shut down."""


class WorkerPool:
    def __init__(self, context: SparkContext) -> None:
        self.context = context
        slots = int(context.defaultParallelism)
        self.parallelism, self.is_alone = max(1, slots - 1), slots == 1
        self._pool_job: _PoolJob | None = None

    @property
    def is_ready(self) -> bool:
        """Whether a task is waiting for calls."""
        return self._pool_job is not None and self._pool_job.has_connections

    def begin(self) -> None:
        """Starts the tasks unless they are running; does not wait for them."""
        if self._pool_job is None:
            self._pool_job = _PoolJob(self.context, self.parallelism)

    def run(self, calls: Sequence[Call]) -> list[Summary]:
        """The return values of the calls. Raises the error that one of them raised."""
        if self.is_alone and self._pool_job is not None and self._pool_job.age > MAX_EXCLUSIVE_TIME:
            self.shut_down()
        self.begin()
        assert self._pool_job is not None
        return self._pool_job.run([pickle.dumps((call, Extensions())) for call in calls])

    def rehearse(self, rehearsal: Rehearsal) -> None:
        """Lets all tasks rehearse a segment concurrently with their calls, and waits for them. Called in another
        thread. A task that dies, or that starts later, opens the segment when it needs it. Registered conditions are
        sent with calls only, since they must not change during one."""
        pool_job = self._pool_job
        if pool_job is not None:
            pool_job.rehearse(pickle.dumps((rehearsal, None)))

    def rest(self) -> None:
        """Called when there is nothing to do for now."""
        if self.is_alone:
            self.shut_down()

    def shut_down(self) -> None:
        """Shuts the tasks down; a running call is lost."""
        pool_job, self._pool_job = self._pool_job, None
        if pool_job is not None:
            pool_job.end()


class _PoolJob:
    """One Spark job: the tasks from their start to their end."""

    def __init__(self, context: SparkContext, size: int) -> None:
        self.context, self.size, self._began = context, size, time.monotonic()
        settings, key = context.getConf(), secrets.token_bytes(32)
        host = settings.get("spark.driver.host", "localhost") or "localhost"
        self._tag = f"fishweir-{uuid.uuid4().hex}"
        self._listener = Listener((settings.get("spark.driver.bindAddress", host), 0), backlog=size + 8, authkey=key)
        self._address = (host, int(self._listener.address[1]))
        self._connections: list[Connection] = []
        self._rehearsing: list[Connection] = []
        self._changed = threading.Condition()
        self._over = False
        self._failure: Exception | None = None
        loop = WorkerLoop(self._address, key)
        self._job = InheritableThread(target=self._hold, args=(loop,), name="fishweir workers", daemon=True)
        self._job.start()
        threading.Thread(target=self._accept, name="fishweir connections", daemon=True).start()

    @property
    def age(self) -> float:
        return time.monotonic() - self._began

    @property
    def has_connections(self) -> bool:
        return bool(self._connections)

    def run(self, pickled: Sequence[bytes]) -> list[Summary]:
        """Gives each task a new call as soon as it has answered the previous one."""
        waiting, busy, answers = list(reversed(pickled)), set[Connection](), []
        try:
            while waiting or busy:
                for line in self._free(busy)[: len(waiting)]:
                    line.send_bytes(waiting.pop())
                    busy.add(line)
                for ready in wait(list(busy)) if len(busy) > 1 else list(busy):
                    assert isinstance(ready, Connection)
                    answers.append(ready.recv())
                    busy.remove(ready)
        except (EOFError, OSError) as error:
            raise WorkerPoolLost(str(self._failure or error)) from (self._failure or error)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def rehearse(self, pickled: bytes) -> None:
        with self._changed:
            lines = list(self._rehearsing)
        for line in lines:
            try:
                line.send_bytes(pickled)
                if line.poll(REHEARSAL_TIMEOUT):
                    line.recv()
                    continue
            except (EOFError, OSError):
                pass  # the task has ended
            with self._changed:
                self._rehearsing.remove(line)

    def end(self) -> None:
        """Ends the tasks: those that wait for a call immediately; the others are cancelled after a while."""
        with self._changed:
            self._over = True
            for line in (*self._connections, *self._rehearsing):
                with suppress(OSError):  # its task has ended
                    _socket(line).shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()
        with suppress(OSError):
            socket.create_connection(self._address).close()  # wakes the thread that waits for connections
        self._job.join(SHUTDOWN_TIMEOUT)
        if self._job.is_alive():
            self.context.cancelJobsWithTag(self._tag)

    def _free(self, busy: set[Connection]) -> list[Connection]:
        """The connections without a call in progress; waits for the first one if there is none at all."""
        with self._changed:
            while not self._connections and not self._over:
                self._changed.wait()
            if self._over:
                raise WorkerPoolLost(str(self._failure or "the worker pool was shut down")) from self._failure
            return [line for line in self._connections if line not in busy]

    def _hold(self, loop: WorkerLoop) -> None:
        """Runs the Spark job; it ends with the pool."""
        try:
            self.context.addJobTag(self._tag)
            self.context.parallelize(range(self.size), self.size).foreachPartition(loop)
        except Exception as failure:
            self._failure = failure
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _accept(self) -> None:
        while not self._over:
            with suppress(OSError, EOFError, AuthenticationError):
                line = self._listener.accept()
                _socket(line).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                lines = self._rehearsing if line.recv_bytes() == REHEARSALS else self._connections
                with self._changed:
                    lines.append(line)
                    self._changed.notify_all()
        self._listener.close()


@dataclass(frozen=True)
class WorkerLoop:
    """The loop of a task: answers calls until the connection is closed."""

    address: tuple[str, int]
    key: bytes

    def __call__(self, _: Iterable[int]) -> None:
        threading.Thread(target=self._serve, args=(REHEARSALS,), name="fishweir rehearsals", daemon=True).start()
        self._serve(CALLS)

    def _serve(self, kind: bytes) -> None:
        with suppress(EOFError, ConnectionError), Client(self.address, authkey=self.key) as line:
            _socket(line).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.send_bytes(kind)
            while True:
                line.send(_answer(line.recv_bytes()))


def _answer(pickled: bytes) -> Summary | Exception | None:
    try:
        call, _ = pickle.loads(pickled)
        return call()  # type: ignore[no-any-return]
    except Exception as error:
        error.add_note(traceback.format_exc())
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return RuntimeError(traceback.format_exc())
        return error


def _socket(line: Connection) -> socket.socket:
    """A socket for the same connection, with its own file descriptor."""
    return socket.socket(fileno=os.dup(line.fileno()))
