"""The dispatcher: takes committed micro-batches in order and hands their results to the actions.

Before a micro-batch is delivered the positions of all its targets are written down; after it, the
batch's number. A crash in between leaves the positions: the next start rewinds the targets and delivers
the micro-batch again. An action that fails is logged and kept in `failures.jsonl`; the rest goes on.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from fishweir.algebra.codec import from_json, to_json
from fishweir.algebra.nodes import Action
from fishweir.delivery.actions import Actions, Deliverer
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import read_json, write_json
from fishweir.pipeline.result import Result
from fishweir.pipeline.results import ResultReader

logger = logging.getLogger("fishweir.delivery")

Subscribed = Callable[[], Mapping[int, tuple[Action, ...]]]


class Dispatcher:
    def __init__(
        self,
        folder: Path,
        table: ResultsTable,
        reader: ResultReader,
        actions: Actions,
        subscribed: Subscribed,
    ) -> None:
        self.table, self.reader, self.actions, self.subscribed = table, reader, actions, subscribed
        self.done, self.journal, self.failures = (
            folder / "done.json",
            folder / "journal.json",
            folder / "failures.jsonl",
        )
        self.batch: int = read_json(self.done, -1)
        self._recover()

    def pending(self) -> int:
        """Delivers all committed micro-batches that have not been; returns how many results."""
        return sum(self._deliver(commit) for commit in self.table.commits(after=self.batch))

    def waiting(self) -> bool:
        return bool(self.table.commits(after=self.batch))

    def _deliver(self, commit: Commit) -> int:
        subscribed = self.subscribed() if commit.matches else {}
        results: dict[Action, list[Result]] = defaultdict(list)
        if subscribed:
            wanted = np.array(sorted(subscribed), dtype=np.int64)
            for number, result in self.reader.read(self.table, commit, wanted):
                for action in subscribed[number]:
                    results[action].append(result)
        opened = {action: d for action in results if (d := self._open(action, results[action])) is not None}
        if opened:
            positions = [[to_json(action), position] for action, (_, position) in opened.items()]
            write_json(self.journal, {"batch": commit.batch, "positions": positions})
        for action, (deliverer, position) in opened.items():
            self._attempt(action, deliverer, position, results[action])
        self.batch = commit.batch
        write_json(self.done, self.batch)
        return sum(len(results[action]) for action in opened)

    # An action is the user's code: whatever it raises, the rest goes on.

    def _attempt(self, action: Action, deliverer: Deliverer, position: int | None, results: list[Result]) -> None:
        """Delivers, or keeps the results as failed and takes back what came through of them."""
        try:
            deliverer.deliver(results)
        except Exception as error:
            self._failed(action, results, error)
            self._rewind(action, position)

    def _open(self, action: Action, results: list[Result]) -> tuple[Deliverer, int | None] | None:
        try:
            deliverer = self.actions.open(action)
            return deliverer, deliverer.position()
        except Exception as error:
            self._failed(action, results, error)
            return None

    def _rewind(self, action: Action, position: int | None) -> None:
        if position is None:
            return
        try:
            self.actions.open(action).rewind(position)
        except Exception as error:
            self._failed(action, [], error)

    def _failed(self, action: Action, results: list[Result], error: Exception) -> None:
        queries = sorted({result.query for result in results})
        shown = ", ".join(queries[:5]) + (" ..." if len(queries) > 5 else "")
        logger.error("action %s %s of %s failed: %s", action.name, " ".join(action.arguments), shown, error)
        with self.failures.open("a") as file:
            record = {
                "action": to_json(action),
                "error": repr(error),
                "results": [r.to_dict() for r in results],
            }
            file.write(json.dumps(record) + "\n")

    def _recover(self) -> None:
        """Takes back what an interrupted delivery may have left."""
        journal = read_json(self.journal, None)
        if journal is None or journal["batch"] <= self.batch:
            return
        for action, position in journal["positions"]:
            self._rewind(from_json(action), position)
