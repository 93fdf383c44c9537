"""Delivery: exactly once where the target can go back, and no action stops another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fishweir.algebra.nodes import Action
from fishweir.delivery.actions import Actions, Append, Call, import_function
from fishweir.delivery.dispatcher import Dispatcher
from fishweir.errors import QueryError
from fishweir.pipeline.commits import Commit, ResultsTable
from fishweir.pipeline.home import write_json
from fishweir.pipeline.result import Result

called: list[Result] = []


def collect(result: Result) -> None:
    """What `do call 'tests.delivery.test_delivery:collect'` calls."""
    called.append(result)


not_callable = 5


class Died(BaseException):
    """The process is gone: nothing catches this."""


def made(query: str, document: str) -> Result:
    return Result(query, [document], 1.0, {"v": {"document": document, "node": 1, "value": "é"}}, f"<v>{document}</v>")


class Desk:
    """A home with committed micro-batches whose results are given, not computed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.table, self.actions = folder, ResultsTable(folder / "results"), Actions()
        self.results: dict[int, list[tuple[int, Result]]] = {}
        self.subscribed: dict[int, tuple[Action, ...]] = {}

    def commit(self, *results: tuple[int, Result]) -> None:
        batch = len(self.results)
        self.results[batch] = list(results)
        self.table.commit(Commit(batch, 1, matches=len(results)))

    def read(self, table: ResultsTable, commit: Commit, wanted: Sequence[int]) -> Iterator[tuple[int, Result]]:
        yield from (found for found in self.results[commit.batch] if found[0] in wanted)

    def dispatcher(self) -> Dispatcher:
        """As a new process would make it."""
        return Dispatcher(self.folder, self.table, self, self.actions, lambda: self.subscribed)  # type: ignore[arg-type]

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        path = self.folder / "failures.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def mailbox(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "mailbox.jsonl"


def append(path: Path) -> Action:
    return Action("append", (str(path),))


def documents(path: Path) -> list[str]:
    return [json.loads(line)["documents"][0] for line in path.read_text(encoding="utf-8").splitlines()]


def test_append_writes_one_line_a_result(desk: Desk, mailbox: Path) -> None:
    desk.subscribed = {1: (append(mailbox),), 2: (append(mailbox),)}
    desk.commit((1, made("a", "d1")), (2, made("b", "d1")), (3, made("c", "d1")))
    desk.commit()
    desk.commit((1, made("a", "d2")))
    dispatcher = desk.dispatcher()
    assert dispatcher.waiting()
    assert dispatcher.pending() == 3
    assert (dispatcher.waiting(), dispatcher.pending()) == (False, 0)
    assert mailbox.read_text(encoding="utf-8").splitlines() == [
        made("a", "d1").to_json(),
        made("b", "d1").to_json(),
        made("a", "d2").to_json(),
    ]
    assert desk.dispatcher().pending() == 0, "a new process knows what was done"


@pytest.mark.parametrize("written", ["nothing", "part of a line", "everything"])
def test_dying_before_the_done_mark_delivers_once(
    desk: Desk, mailbox: Path, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.subscribed = {1: (append(mailbox),)}
    desk.commit((1, made("a", "d1")))
    desk.dispatcher().pending()
    desk.commit((1, made("a", "d2")), (1, made("a", "d3")))
    whole = Append.deliver

    def dying(self: Append, results: Sequence[Result]) -> None:
        if written == "part of a line":
            with self.path.open("a") as file:
                file.write(results[0].to_json()[:20])
        elif written == "everything":
            whole(self, results)
        raise Died

    monkeypatch.setattr(Append, "deliver", dying)
    with pytest.raises(Died):
        desk.dispatcher().pending()
    monkeypatch.setattr(Append, "deliver", whole)
    assert desk.dispatcher().pending() == 2
    assert documents(mailbox) == ["d1", "d2", "d3"]


def test_dying_twice(desk: Desk, mailbox: Path) -> None:
    """Delivered, but the done mark was lost: as often as that happens, each line is there once."""
    desk.subscribed = {1: (append(mailbox),)}
    desk.commit((1, made("a", "d1")))
    desk.dispatcher().pending()
    desk.commit((1, made("a", "d2")))
    for _ in range(3):
        desk.dispatcher().pending()
        write_json(desk.folder / "done.json", 0)
    assert desk.dispatcher().pending() == 1
    assert documents(mailbox) == ["d1", "d2"]


def test_a_journal_of_a_finished_batch_takes_nothing_back(desk: Desk, mailbox: Path) -> None:
    desk.subscribed = {1: (append(mailbox),)}
    desk.commit((1, made("a", "d1")))
    desk.dispatcher().pending()
    assert (desk.folder / "journal.json").exists()
    desk.dispatcher()
    assert documents(mailbox) == ["d1"]


def test_rewind_truncates_and_never_lengthens(tmp_path: Path) -> None:
    target = Append(str(tmp_path / "f"))
    assert target.position() == 0
    target.rewind(0)
    target.deliver([made("a", "d1")])
    position = target.position()
    target.deliver([made("a", "d2")])
    target.rewind(position)
    assert documents(target.path) == ["d1"]
    target.rewind(10_000)
    assert target.position() == position


def test_a_failing_action_is_kept_and_others_go_on(desk: Desk, mailbox: Path) -> None:
    def refuse(result: Result) -> None:
        raise RuntimeError(f"no room for {result.documents[0]}")

    desk.actions.register_callable("refuse", refuse)
    desk.subscribed = {1: (Action("refuse"), append(mailbox)), 2: (append(mailbox),)}
    desk.commit((1, made("a", "d1")), (2, made("b", "d2")))
    desk.commit((2, made("b", "d3")))
    desk.dispatcher().pending()
    assert documents(mailbox) == ["d1", "d2", "d3"]
    (failure,) = desk.failures
    assert failure["action"]["name"] == "refuse"
    assert "no room for d1" in failure["error"]
    assert failure["results"] == [made("a", "d1").to_dict()]


class Sour:
    """Fails where it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._fail("open")

    def _fail(self, here: str) -> None:
        if self.where == here:
            raise ValueError(f"sour at {here}")

    def position(self) -> int:
        self._fail("position")
        return 0

    def rewind(self, position: int) -> None:
        self._fail("rewind")

    def deliver(self, results: Sequence[Result]) -> None:
        self._fail("deliver")
        if self.where == "rewind":
            raise ValueError("sour before rewind")


@pytest.mark.parametrize("where", ["open", "position", "deliver", "rewind"])
def test_whatever_an_action_raises_the_rest_goes_on(desk: Desk, mailbox: Path, where: str) -> None:
    desk.actions.register("sour", Sour)
    desk.subscribed = {1: (Action("sour", (where,)), append(mailbox))}
    desk.commit((1, made("a", "d1")))
    desk.dispatcher().pending()
    assert documents(mailbox) == ["d1"]
    assert f"sour at {where}" in desk.failures[-1]["error"]
    assert desk.failures[0]["results"] == [made("a", "d1").to_dict()]


def test_a_rewind_that_fails_does_not_stop_the_start(desk: Desk) -> None:
    desk.actions.register("sour", Sour)
    journal = {"batch": 5, "positions": [[{"!": "Action", "name": "sour", "arguments": ["rewind"]}, 3]]}
    write_json(desk.folder / "journal.json", journal)
    desk.dispatcher()
    assert "sour at rewind" in desk.failures[0]["error"]


def test_a_failed_append_leaves_no_torn_line(desk: Desk, mailbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in failures.jsonl is not in the file, and the next result begins a line."""
    desk.subscribed = {1: (append(mailbox),)}
    whole = Append.deliver

    def disk_full(self: Append, results: Sequence[Result]) -> None:
        whole(self, results[:1])
        with self.path.open("a") as file:
            file.write(results[1].to_json()[:20])
        raise OSError("no space left on device")

    monkeypatch.setattr(Append, "deliver", disk_full)
    desk.commit((1, made("a", "d1")), (1, made("a", "d2")))
    dispatcher = desk.dispatcher()
    dispatcher.pending()
    monkeypatch.setattr(Append, "deliver", whole)
    desk.commit((1, made("a", "d3")))
    dispatcher.pending()
    assert documents(mailbox) == ["d3"]
    assert [r["documents"] for r in desk.failures[0]["results"]] == [["d1"], ["d2"]]


def test_call_calls_once_a_result(desk: Desk) -> None:
    called.clear()
    desk.subscribed = {1: (Action("call", (f"{__name__}:collect",)),)}
    desk.commit((1, made("a", "d1")), (1, made("a", "d2")))
    assert desk.dispatcher().pending() == 2
    assert called == [made("a", "d1"), made("a", "d2")]
    assert Call(collect).position() is None


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no.such.module:f", "No module named"),
        ("json:no_such", "no attribute"),
        ("json", "module:function"),
        ("", "module:function"),
        (f"{__name__}:not_callable", "it is no function"),
    ],
)
def test_unknown_functions(target: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        import_function(target)


def test_an_unknown_function_fails_its_own_results_only(desk: Desk, mailbox: Path) -> None:
    desk.subscribed = {1: (Action("call", ("no.such:f",)),), 2: (append(mailbox),)}
    desk.commit((1, made("a", "d1")), (2, made("b", "d2")))
    assert desk.dispatcher().pending() == 1
    assert documents(mailbox) == ["d2"]
    assert "no.such" in desk.failures[0]["error"]


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Action("fax", ("1",)), "'fax'.*there are: append, call"),
        (Action("append"), "the action append does not take"),
        (Action("append", ("a", "b")), "the action append does not take"),
    ],
)
def test_actions_that_could_never_be_opened(action: Action, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        Actions().check(action)


def test_the_registry_is_open(desk: Desk) -> None:
    class Collector:
        boxes: dict[str, list[Result]] = {}  # noqa: RUF012

        def __init__(self, box: str) -> None:
            self.box = box

        def position(self) -> None:
            return None

        def rewind(self, position: int) -> None: ...

        def deliver(self, results: Sequence[Result]) -> None:
            self.boxes.setdefault(self.box, []).extend(results)

    desk.actions.register("Collect", Collector)
    desk.subscribed = {1: (Action("collect", ("left",)),), 2: (Action("collect", ("right",)),)}
    desk.commit((1, made("a", "d1")), (2, made("b", "d2")))
    desk.dispatcher().pending()
    assert Collector.boxes == {"left": [made("a", "d1")], "right": [made("b", "d2")]}


def test_one_result_to_several_actions_of_a_query(desk: Desk, tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    desk.subscribed = {1: (append(first), append(second))}
    desk.commit((1, made("a", "d1")))
    assert desk.dispatcher().pending() == 2
    assert documents(first) == documents(second) == ["d1"]
