"""Files and functions: exactly once if the target can be rewound, at least once otherwise; no target blocks another."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fishweir import testing
from fishweir.delivery.outputs.append import Append
from fishweir.delivery.outputs.call import Call, import_function
from fishweir.errors import QueryError
from fishweir.pipeline.result import Result
from fishweir.testing import Clock, Weir

called: list[Result] = []
not_callable = 5
ALL = "create query {name} as select x from R do {action};"


def collect(result: Result) -> None:
    """The function that `do call 'tests.delivery.test_delivery:collect'` calls."""
    called.append(result)


class Died(BaseException):
    """Simulates a dead process: nothing catches this."""


def publish(weir: Weir, *values: int) -> None:
    weir.publish("R", [{"x": value} for value in values])
    weir.step()


def numbers(path: str | Path) -> list[int]:
    return [json.loads(line)["output"]["x"] for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_append_writes_one_line_per_result(weir: Weir) -> None:
    weir.execute(ALL.format(name="a", action="append 'deep/box.jsonl'") + ALL.format(name="b", action="jsonl 'other'"))
    publish(weir, 1, 2)
    publish(weir, 3)
    lines = Path("deep/box.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines == [result.to_json() for result in weir.results("a")]
    assert numbers("deep/box.jsonl") == numbers("other") == [1, 2, 3]
    assert weir.letters() == []


def test_queries_with_the_same_action_are_one_delivery(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    delivered: list[int] = []
    whole = Append.deliver
    monkeypatch.setattr(Append, "deliver", lambda self, some: (delivered.append(len(some)), whole(self, some)))
    weir.register_many("create query $name as select x from R do append 'box'", [{"name": f"n{i}"} for i in range(50)])
    publish(weir, 7)
    assert delivered == [50]
    assert numbers("box") == [7] * 50


@pytest.mark.parametrize("written", ["nothing", "part of a line", "everything"])
def test_dying_while_appending_delivers_once(weir: Weir, written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weir.execute(ALL.format(name="a", action="append 'box'"))
    publish(weir, 1)
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
        publish(weir, 2, 3)
    monkeypatch.setattr(Append, "deliver", whole)
    with testing.open(weir.home.path, clock=weir.clock) as again:  # type: ignore[arg-type]
        again.step()
        again.step()
    assert numbers("box") == [1, 2, 3]


def test_a_failed_append_leaves_no_partial_line_and_is_retried(
    weir: Weir, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    weir.execute(ALL.format(name="a", action="append 'box'"))
    whole = Append.deliver

    def disk_full(self: Append, results: Sequence[Result]) -> None:
        whole(self, results[:1])
        with self.path.open("a") as file:
            file.write(results[1].to_json()[:20])
        raise OSError("no space left on device")

    monkeypatch.setattr(Append, "deliver", disk_full)
    publish(weir, 1, 2)
    assert Path("box").read_text() == ""
    (letter,) = weir.letters()
    assert (letter.feeds, letter.attempts, letter.dead) == (("a",), 1, False)
    assert "no space left" in str(letter.error)
    monkeypatch.setattr(Append, "deliver", whole)
    publish(weir, 3)
    assert Path("box").read_text() == "", "the pause has not ended, and order is kept"
    clock.advance(1)
    weir.step()
    assert numbers("box") == [1, 2, 3]


def test_rewind_truncates_and_never_lengthens(tmp_path: Path) -> None:
    target, one = Append(str(tmp_path / "f")), Result("a", ["d1"], 1.0)
    assert target.position() == 0
    target.rewind(0)
    target.deliver([one])
    position = target.position()
    target.deliver([one])
    target.rewind(position)
    target.rewind(10_000)
    assert (target.position(), len(target.path.read_text().splitlines())) == (position, 1)


def test_call_resumes_where_it_failed(weir: Weir, clock: Clock) -> None:
    seen: list[int] = []
    broken = [True]

    def take(result: Result) -> None:
        assert isinstance(result.output, dict)
        if result.output["x"] == 2 and broken[0]:
            raise RuntimeError("not now")
        seen.append(result.output["x"])

    weir.action("take", take)
    weir.execute(ALL.format(name="a", action="take") + ALL.format(name="b", action="append 'box'"))
    publish(weir, 1, 2, 3)
    assert (seen, numbers("box")) == ([1], [1, 2, 3]), "a failure stops no other delivery"
    broken[0] = False
    clock.advance(1)
    weir.step()
    assert seen == [1, 2, 3]


def test_call_by_name(weir: Weir) -> None:
    called.clear()
    weir.execute(ALL.format(name="a", action=f"call '{__name__}:collect'"))
    publish(weir, 1, 2)
    assert called == list(weir.results("a"))
    assert Call(collect).position() is None


def test_registering_a_function_does_not_import_it(weir: Weir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "calls" / "actions"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "later.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path / "calls")
    weir.execute(ALL.format(name="a", action="call 'actions.later:f'"))
    with pytest.raises(QueryError, match=r"there is no module 'actions\.never'"):
        weir.execute(ALL.format(name="b", action="call 'actions.never:f'"))
    assert "actions" not in sys.modules
    publish(weir, 1)
    assert "imported" in str(weir.letters()[0].error)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no.such.module:f", "No module named"),
        ("json:no_such", "no attribute"),
        ("json", "module:function"),
        ("", "module:function"),
        (f"{__name__}:not_callable", "it is not a function"),
    ],
)
def test_unknown_functions(target: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        import_function(target)


REFUSED = [
    ("fax '1'", "fax", "unknown action 'fax'; available actions: append, atom, call"),
    ("append", "append", "append does not take"),
    ("append 'a' 'b'", "append", "append does not take"),
    ("append 'https://h.org/'", "'https://h.org/'", "is a URL"),
    ("append 'home'", "'home'", "is a folder"),
    ("append 'home/catalog.db/x'", "'home/catalog.db/x'", "catalog.db is not a folder"),
    ("parquet 'home/catalog.db/x'", "'home/catalog.db/x'", "catalog.db is not a folder"),
    ("http 'ftp://h.org/x'", "'ftp://h.org/x'", "not an HTTP URL"),
    ("http 'http://'", "'http://'", "not an HTTP URL"),
    ("http 'http://h.org:99999/'", "'http://h.org:99999/'", "not an HTTP URL"),
    ("http 'http://u:p@h.org/'", "'http://u:p@h.org/'", "use {secret NAME}"),
    ("mail 'nobody'", "'nobody'", "not a mail address"),
    ("MailTo nobody", "nobody", "not a mail address"),
    ("notify 'nothing://x'", "'nothing://x'", "not a URL that Apprise supports"),
    ("call 'nomodule:f'", "'nomodule:f'", "there is no module 'nomodule'"),
    ("call 'json.nothing.more:f'", "'json.nothing.more:f'", "there is no module 'json.nothing'"),
    ("call 'json.decoder.more:f'", "'json.decoder.more:f'", "there is no module 'json.decoder.more'"),
    ("call 'json:no_such'", "'json:no_such'", "the module has no function 'no_such'"),
    ("call 'json:__doc__'", "'json:__doc__'", "the module has no function '__doc__'"),
    ("call 'json'", "'json'", "write 'module:function'"),
    ("call '.json:f'", "'.json:f'", "write 'module:function'"),
    ("call 'json:decoder.f'", "'json:decoder.f'", "write 'module:function'"),
    ("append 'x' at most none per hour", "none", "not a number of deliveries"),
    ("append 'x' quiet 25:00-07:00", "25:00-07:00", "not a range of hours"),
    ("append 'x' quiet 22:00-07:00 Europe/Atlantis", "Europe/Atlantis", "not a time zone"),
    ("append 'x' secret", "secret", "not allowed here"),
    ("append 'x' secret key", "secret", "append does not sign deliveries"),
    ("mail 'a@b.org' secret key", "secret", "mail does not sign deliveries"),
]


@pytest.mark.parametrize(("action", "word", "reason"), REFUSED, ids=[case[0] for case in REFUSED])
@pytest.mark.parametrize("statement", ["create query q as select x from R do {}", "subscribe to R output {}"])
def test_invalid_clauses_are_refused_with_their_position(
    weir: Weir, statement: str, action: str, word: str, reason: str
) -> None:
    version = weir.status().version
    with pytest.raises(QueryError) as caught:
        weir.execute(f"\n {statement.format(action)};")
    assert reason in str(caught.value)
    line, caret = str(caught.value).splitlines()[1:]
    assert line[caret.index("^") :].lower().startswith(word.lower())
    assert weir.status().version == version


def test_the_registry_is_open(weir: Weir) -> None:
    boxes: dict[str, list[Any]] = {}

    class Collector:
        def __init__(self, box: str) -> None:
            self.box = box

        def position(self) -> None:
            return None

        def rewind(self, position: int) -> None: ...

        def deliver(self, results: Sequence[Result]) -> None:
            boxes.setdefault(self.box, []).extend(result.output for result in results)

    weir.register_action("Collect", Collector)
    weir.execute(ALL.format(name="a", action="collect left do collect right") + "subscribe to a output collect third")
    publish(weir, 5)
    assert boxes == {"left": [{"x": 5}], "right": [{"x": 5}], "third": [{"x": 5}]}
    with pytest.raises(QueryError, match="built in"):
        weir.register_action("http", Collector)


def test_cost_depends_on_fired_queries_only(weir: Weir, executed: list[dict[str, Any]]) -> None:
    """Reading a commit decodes only the subscriptions of fired queries, however many there are."""
    rows = [{"name": f"n{i}", "i": i} for i in range(3000)]
    weir.register_many("create query $name as select x from R where x = $i do append 'box'", rows)
    publish(weir, 5)
    executed.clear()
    publish(weir, 7)
    assert numbers("box") == [5, 7]
    values = [value for values in executed for value in values.values()]
    assert sum(len(value) if isinstance(value, list) else 1 for value in values) < 1500


def test_later_subscribers_get_later_results(weir: Weir) -> None:
    weir.execute("create query a as select x from R")
    for value in (1, 2, 3):
        publish(weir, value)
    weir.execute("subscribe to a output append 'later'")
    publish(weir, 4)
    publish(weir, 5)
    assert numbers("later") == [4, 5]
