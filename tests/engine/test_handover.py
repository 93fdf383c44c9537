"""Joins with a start in the past and unlimited windows: the job takes them over with their earlier state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fishweir import testing
from fishweir.algebra.join_oracle import evaluate_join
from fishweir.engine import handover
from fishweir.languages.script import parse_script
from tests.engine.test_backfill_joins import BEGAN, STREAMS, Found, History, Item, kill_a_run, of

ENDLESS = {
    "ever": "select A.k from A [range unbounded], B [range 2] where A.k = B.k",
    "both": "select A.k from A [range unbounded], B [range unbounded] where A.k = B.k and A.t < 30",
    "unequal": "select A.k from A [range unbounded], B [range unbounded] where A.k < B.k",
    "itself": "select X.k from A as X [range unbounded], A as Y [range 3] where X.k = Y.k and X.t < Y.t",
    "elements": 'where <d><k>$k</></> element_as $a in "A", <d><k>$k</></> element_as $b in "B" construct <r>$k</>',
}
OTHERS = {"rows": "select A.k from A [rows 2], B [rows 3] where A.k = B.k"}


def expected(text: str, items: Sequence[Item]) -> Found:
    (query,) = parse_script(f"create query q as {text}" if "construct" not in text else f"create q {text}")
    sides = [[item.document for item in of(items, block.source.name)] for block in query.shape.blocks]  # type: ignore[union-attr]
    joined = evaluate_join(query.shape, query.constants, sides)  # type: ignore[union-attr, arg-type]
    return sorted(pair.documents for pair in joined)


class Copies:
    """The same queries registered repeatedly, with and without a start in the past, and what each should see."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.seen: dict[str, tuple[str, list[Item]]] = {}

    def register(self) -> None:
        history = self.history
        history.weir.run(until_idle=True)
        for name, text in (ENDLESS | OTHERS).items():
            if history.draw.random() < 0.3 or (name == "rows" and not history.in_order):
                continue
            own, start, items = f"{name}{len(self.seen)}", "", list[Item]()
            if name != "rows" and history.draw.random() < 0.6:
                since = history.draw.uniform(BEGAN, history.clock.now)
                start, items = f" start '{since}'", [item for item in history.items if item.arrived >= since]
            query = f"create {own} {text}{start}" if "construct" in text else f"create query {own} as {text}{start}"
            history.weir.execute(query)
            self.seen[own] = text, items

    def go_on(self, steps: int) -> None:
        before = len(self.history.items)
        self.history.go_on(steps)
        for _, items in self.seen.values():
            items += self.history.items[before:]

    def check(self) -> None:
        weir = self.history.weir
        weir.run(until_idle=True)
        for own, (text, items) in self.seen.items():
            assert sorted(result.documents for result in weir.results(own)) == expected(text, items), own


@pytest.mark.parametrize("seed", range(4))
def test_equal_to_the_definition_over_restarts(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries that share operators and state see only their own results."""
    monkeypatch.setattr(handover, "ENTRIES", 4)
    history = History(tmp_path / "home", seed)
    history.weir.execute(STREAMS)
    copies = Copies(history)
    for _ in range(3):
        copies.go_on(history.draw.randint(5, 15))
        copies.register()
    copies.go_on(20)
    copies.check()
    commits = history.weir.table.commits()
    assert any(commit.handed_over for commit in commits)
    assert [commit for commit in commits if not commit.past][-1].hidden == [], "the job evaluates all of them"
    history.weir.close()
    history.weir = history.open()
    copies.go_on(10)
    copies.check()
    history.weir.close()


def test_results_after_repeated_kills(tmp_path: Path) -> None:
    a = [Item("A", n, n, n % 3, BEGAN) for n in range(1, 200)]
    b = [Item("B", n, n + 2, n % 3, BEGAN) for n in range(1, 200)]
    with testing.open(tmp_path / "home") as weir:
        weir.execute(STREAMS)
        for start in range(0, 100, 50):
            weir.publish("A", [item.text for item in a[start : start + 50]])
            weir.publish("B", [item.text for item in b[start : start + 50]])
            weir.run(until_idle=True)
        weir.execute(f"create query ever as {ENDLESS['ever']} start '0'")
    for start, seconds in ((100, 0.0), (130, 0.1), (160, 0.4), (190, 0.8)):
        with testing.open(tmp_path / "home") as weir:
            weir.publish("A", [item.text for item in a[start : start + 30]])
            weir.publish("B", [item.text for item in b[start : start + 30]])
        kill_a_run(tmp_path / "home", seconds)
    with testing.open(tmp_path / "home", documents_per_batch=5) as weir:
        weir.run(until_idle=True)
        assert any(commit.handed_over for commit in weir.table.commits())
        assert sorted(result.documents for result in weir.results("ever")) == expected(ENDLESS["ever"], [*a, *b])


def test_a_chain_whose_first_join_never_ends(tmp_path: Path) -> None:
    """The first join publishes documents from before and after its handover."""
    chain = "A->x FOLLOWED BY{x/k = y/k, 1000000} B->y FOLLOWED BY{y/k = z/k, 5} C->z"
    published = "select A.k as k from A [range unbounded], B [range unbounded] where A.k = B.k publish J"
    with testing.open(tmp_path / "home", clock=testing.Clock(BEGAN)) as weir:
        weir.execute(STREAMS)
        weir.publish("A", [Item("A", 1, 0, 1, BEGAN).text])
        weir.run(until_idle=True)
        weir.execute(f"create query chain as {chain} start '0'; create query J as {published} start '0'")
        weir.execute("create query reads as select k from J")
        weir.run(until_idle=True)
        for time in (5, 6):
            weir.publish("B", [Item("B", 0, time, 1, BEGAN).text])
            weir.publish("C", [Item("C", 0, time + 1, 1, BEGAN).text])
            weir.run(until_idle=True)
        assert any(commit.handed_over for commit in weir.table.commits())
        assert len(list(weir.results("J"))) == len(list(weir.results("reads"))) == 2
        assert len(list(weir.results("chain"))) == 3
