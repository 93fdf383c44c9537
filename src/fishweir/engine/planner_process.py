"""The planner process: rewrites segments in the background, so that no micro-batch waits for it.

It is started on demand, processes one work item at a time and ends with the job. It reads work from its standard input
and writes outcomes to its standard output; segments are files. If it dies, that is logged, and the next work item
starts it again. Small work items are done in the job, which is faster than sending them.

A segment is adopted after its rehearsal: until then, micro-batches run with the segments that it replaces.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from fishweir.evaluate.plan.rebuild import FinishedWork, RebuildResult, Work, perform, rehearse_new

logger = logging.getLogger("fishweir.plan")

SMALL_WORK = 500
"""The number of queries up to which work is done in the calling thread."""
NICENESS = 5
"""The niceness of the process: the job has priority."""


class PlannerProcess:
    """A rebuilder (evaluate/plan/rebuild.py) in a separate process."""

    def __init__(self, folder: Path, strategies: Mapping[str, str]) -> None:
        from fishweir.engine.planning import named

        self.folder, self.strategies, self.requested = folder, dict(strategies), named(strategies)
        self.process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self.rehearse: Callable[[str], None] = lambda segment: None
        """Called in a separate thread with each new segment, before it is handed to the planner."""
        self._done: FinishedWork | None = None
        self._closed = False

    @property
    def busy(self) -> bool:
        return self._thread is not None

    def begin(self, work: Work) -> None:
        if work.size <= SMALL_WORK:
            self._done = FinishedWork(work, perform(self.folder, work, self.requested))
            return
        self._thread = threading.Thread(target=self._ask, args=(work,), name="fishweir-planner", daemon=True)
        self._thread.start()

    def take(self) -> FinishedWork | None:
        done, self._done = self._done, None
        if done is not None and self._thread is not None:
            self._thread.join()
            self._thread = None
        return done

    def close(self) -> None:
        """Ends the process. Work in progress is lost, and repeated by the next run."""
        self._closed = True
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        if self._thread is not None:
            self._thread.join()

    def _ask(self, work: Work) -> None:
        try:
            outcome = self._answer(work)
            rehearse_new(self.rehearse, work, outcome)
            self._done = FinishedWork(work, outcome)
        except Exception as error:
            self._done = FinishedWork(work, None, failed=str(error) or repr(error))

    def _answer(self, work: Work) -> RebuildResult:
        from fishweir.pipeline.spark.extensions import Extensions

        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((Extensions(), work), process.stdin)
            process.stdin.flush()
            kind, answer = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            code = process.wait()
            self.process = None
            if self._closed:
                raise RuntimeError("the job was stopped") from None
            raise RuntimeError(f"the planner process ended ({code}); it will be restarted") from error
        if kind == "failed":
            raise RuntimeError(answer)
        return answer  # type: ignore[no-any-return]

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            command = [sys.executable, "-m", "fishweir.engine.planner_process"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.process = process
            assert process.stdin is not None
            pickle.dump((list(sys.path), str(self.folder), self.strategies), process.stdin)
        return self.process


def main() -> None:
    """Processes work until the job ends."""
    given, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not mix with outcomes
    os.nice(NICENESS)
    path, folder, strategies = pickle.load(given)
    sys.path.extend(entry for entry in path if entry not in sys.path)
    serve(Path(folder), strategies, given, answers)


def serve(folder: Path, strategies: Mapping[str, str], given: BinaryIO, answers: BinaryIO) -> None:
    from fishweir.engine.planning import named

    requested = named(strategies)
    while True:
        try:
            _, work = pickle.load(given)
        except EOFError:
            return
        answer: tuple[str, Any]
        try:
            answer = "done", perform(folder, work, requested)
        except Exception as error:
            answer = "failed", f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
