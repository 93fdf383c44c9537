"""Suspended paths: other paths are not affected, suspended paths never count as absent, turns follow numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from fishweir.algebra.clauses import constants_of, to_normals
from fishweir.algebra.documents import parse_document
from fishweir.algebra.feeds import Filter, Selection
from fishweir.algebra.formula import And, Atom, Formula, Not, Or
from fishweir.algebra.nodes import Slot, Source, Step
from fishweir.evaluate.plan.plan import plan_of
from fishweir.evaluate.plan.segments import build_groups, planned_segment
from fishweir.evaluate.witnesses.counters import StreamCounters
from fishweir.evaluate.witnesses.path_tables import Path, suspended_documents
from fishweir.evaluate.witnesses.shared_paths import SharedPaths
from fishweir.evaluate.witnesses.turns import EVERYTHING, ElementTurns, Turns, turn_at
from tests.evaluate.support import expanded, queries

NAMES = ("a", "b", "c", "k")


def path(text: str) -> Path:
    """`/r/a` or `/r//a`."""
    steps = text.replace("//", "/.").split("/")[1:]
    return tuple(Step(s.lstrip("."), "descendant" if s[0] == "." else "child") for s in steps)


PATHS = [path(text) for text in ("/r", "/r/a", "/r/a/b", "/r/a//c", "/r//b", "//k", "/r/k/a", "//c/b")]


def random_document(draw: random.Random, depth: int = 0) -> str:
    name = "r" if not depth else draw.choice(NAMES)
    inner = "".join(random_document(draw, depth + 1) for _ in range(draw.randint(0, 3))) if depth < 4 else ""
    return f"<{name}>{draw.choice(['', '1', '7'])}{inner}</{name}>"


def lines(shared: SharedPaths, texts: list[str], turns: Turns) -> dict[tuple[int, Path], list[object]]:
    """Nodes and values by document and path."""
    walk = shared.start(turns)
    for i, text in enumerate(texts):
        walk.add(i, parse_document(text.encode()), (), i)
    found: dict[tuple[int, Path], list[object]] = {}
    for one, table in walk.tables().items():
        for document, nodes, value in zip(table.documents, table.nodes.tolist(), table.texts.to_pylist(), strict=True):
            found.setdefault((int(document), one), []).append((nodes, value))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_other_paths_are_not_affected(seed: int) -> None:
    draw = random.Random(seed)
    texts = [random_document(draw) for _ in range(12)]
    shared = SharedPaths()
    shared.hold({"1": {one: draw.random() < 0.5 for one in PATHS}})
    everything = lines(shared, texts, EVERYTHING)
    for _ in range(3):
        sets = tuple(frozenset(draw.sample(PATHS, draw.randint(0, 6))) for _ in range(3))
        turns = Turns(tuple(draw.randint(1, 3) for _ in sets), sets)
        found = lines(shared, texts, turns)
        for (document, one), expected in everything.items():
            suspended = turns.suspended[turns.at(document)]
            if one not in shared.unevaluated(suspended):
                assert found[document, one] == expected
            else:
                assert one in suspended
                assert (document, one) not in found


def test_a_suspended_path_within_another_path_is_found() -> None:
    shared = SharedPaths()
    shared.hold({"1": {path("/r/a"): True, path("/r/a/b"): True}})
    assert shared.unevaluated([path("/r/a")]) == frozenset()
    assert shared.unevaluated([path("/r/a/b")]) == {path("/r/a/b")}


def test_subtrees_that_only_suspended_paths_need_are_skipped() -> None:
    shared = SharedPaths()
    shared.hold({"1": {path("/r/a//c"): True, path("/r/b"): False}})
    text = f"<r><a>{'<x><c>1</c></x>' * 50}</a><b/></r>"
    for suspended, skipped in ((frozenset[Path](), 0), (frozenset([path("/r/a//c")]), 101)):
        walk = shared.start(Turns((1,), (suspended,)))
        walk.add(0, parse_document(text.encode()))
        counted = walk.tables().counters()
        assert (counted.elements, counted.skipped) == (103, skipped)


def test_paths_are_added_and_removed_while_others_are_suspended() -> None:
    shared = SharedPaths()
    turns = Turns((1,), (frozenset([path("/r/a/b")]),))
    text = "<r><a>1<b>2</b></a><k><a>3</a></k></r>"
    shared.hold({"1": {path("/r/a/b"): True, path("/r/k/a"): True}})
    assert lines(shared, [text], turns) == {(0, path("/r/k/a")): [([0, 3, 4], "3")]}
    shared.hold({"1": {path("/r/a/b"): True, path("/r/k/a"): True}, "2": {path("/r/a"): True}})
    assert lines(shared, [text], turns)[0, path("/r/a")] == [([0, 1], "12")]
    shared.hold({"2": {path("/r/a"): True}})
    assert lines(shared, [text], turns) == {(0, path("/r/a")): [([0, 1], "12")]}


def test_turns_follow_the_numbers_of_documents() -> None:
    turns = Turns((2, 0, 3), (frozenset(), frozenset([PATHS[0]]), frozenset([PATHS[1]])))
    assert [turns.at(number) for number in range(11)] == [0, 0, 2, 2, 2, 0, 0, 2, 2, 2, 0]


TEXTS = (
    "s//r->x[a]", "s//r->x[a][not(k)]", "s//r->x[not(a/b)]", "s//r->x[not(k[not(a)])]", "s//r->x[a = '1' or c = '7']",
    "s//a->x[not(b = 1) and (c or not(k))]", "where <r><a><b>$p</></></> in 's', not($p = 1) construct $p",
)  # fmt: skip


def formula(draw: random.Random, slots: list[Slot], depth: int = 2) -> Formula:
    kind = draw.choice(("and", "or", "not", "atom")) if depth else "atom"
    if kind == "atom":
        slots.append(Slot(len(slots), "string"))
        return Atom((Step(draw.choice(NAMES)),), draw.choice(("=", "!=", "contains")), slots[-1])
    if kind == "not":
        return Not(formula(draw, slots, depth - 1))
    parts = tuple(formula(draw, slots, depth - 1) for _ in range(2))
    return And(parts) if kind == "and" else Or(parts)


def shapes(draw: random.Random) -> list[tuple[Any, tuple[Any, ...]]]:
    """Patterns, filters and columns, with their constants."""
    found: list[tuple[Any, tuple[Any, ...]]] = [(one.shape, one.constants) for one in queries(*TEXTS)]
    for columns in (False, True) * 4:
        slots: list[Slot] = []
        filters = (Filter(Source("s"), formula(draw, slots)),)
        found.append((Selection(filters, None, tuple(slots), columns), tuple(draw.choice("17") for _ in slots)))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_no_query_fires_because_a_path_was_suspended(seed: int) -> None:
    """Queries that fire under suspension also fire without it; those that read no suspended path are not affected."""
    draw = random.Random(seed)
    texts = [random_document(draw) for _ in range(30)]
    rows = [
        (number, normal.template, constants_of(normal, constants))
        for number, (shape, constants) in enumerate(shapes(draw))
        for normal in to_normals(shape)
    ]
    segment = planned_segment("1", build_groups(rows, {}), {})
    plan = plan_of([segment], [Source("s")])
    every = sorted(plan.paths, key=str)
    suspended = frozenset(draw.sample(every, draw.randint(1, len(every))))
    turns = Turns((1, 1), (frozenset(), suspended))

    def fires(turns: Turns) -> set[tuple[int, int]]:
        walk = plan.start(turns)
        for i, text in enumerate(texts):
            walk.add(i, parse_document(text.encode()), (), i)
        witnesses = walk.tables()
        assert set(suspended_documents(witnesses, every).tolist()) <= set(range(1, len(texts), 2))
        found = [(segment.groups[i], matches) for _, i, matches in plan.match(witnesses)]
        return {(n, d) for group, matches in found for n, d, _ in expanded(group, matches)}  # type: ignore[arg-type]

    everything, some = fires(EVERYTHING), fires(turns)
    assert some <= everything
    for number, document in everything - some:
        assert document % 2 == 1
        alone = planned_segment("2", build_groups([row for row in rows if row[0] == number], {}), {})
        assert not suspended.isdisjoint(plan_of([alone], [Source("s")]).paths)


def test_counts_of_the_walk() -> None:
    """Elements and bytes of the documents and below each path, the same with and without other suspended paths."""
    a, b = path("/r/a"), path("/r/a//b")
    shared = SharedPaths()
    shared.hold({"1": {a: False, b: True}})
    text = "<r><a><b>1</b><c><b/></c></a><k><k/></k><a/></r>"
    for suspended, below in ((frozenset[Path](), (0, 12)), (frozenset([b]), (0, 0))):
        walk = shared.start(Turns((1,), (suspended,)))
        walk.add(0, text.encode())
        counted = StreamCounters.from_json(walk.tables().counters().to_json())
        assert (counted.elements, counted.bytes) == (8, len(text))
        assert counted.of(a) == (2, 1)
        assert counted.below_nodes(a) == (3, len("<a><b>1</b><c><b/></c></a><a/>"))
        assert counted.below_nodes(b) == below
        counted.add(counted)
        assert (counted.bytes, counted.below_nodes(a)[0]) == (2 * len(text), 6)


def test_elements_of_a_document_take_turns() -> None:
    """Each element is walked as if its turn applied to the whole document; omitted elements yield nothing."""
    draw = random.Random(3)
    items = ["<a>" + "".join(random_document(draw, 2) for _ in range(3)) + "<b>1</b></a>" for _ in range(200)]
    text = "<r><k>1</k>" + "".join(items) + "<b>7</b></r>"
    shared = SharedPaths()
    shared.hold({"1": dict.fromkeys([path("/r/a"), path("/r/a/b"), path("/r/a//c"), path("/r/k")], True)})
    suspended = (frozenset[Path](), frozenset([path("/r/a/b")]))
    ends = (1 << 30, 3 << 30)
    turns = ElementTurns(("r", "a"), ends, suspended)
    number = 17

    def walked(content: bytes, turns: Turns | ElementTurns) -> tuple[dict[Path, list[Any]], int]:
        walk = shared.start(turns)
        walk.add(0, content, (), number)
        tables = walk.tables()
        found = {one: list(zip(t.nodes.tolist(), t.texts.to_pylist(), strict=True)) for one, t in tables.items()}
        return found, tables.left_out

    body = text.encode()
    everything, none = walked(body, EVERYTHING)
    some, left_out = walked(body, turns)
    assert not none
    turn = {nodes[-1]: turn_at(number, nodes[-1], np.array(ends)) for nodes, _ in everything[path("/r/a")]}
    counts = [list(turn.values()).count(k) for k in range(3)]
    assert counts[2] == left_out
    assert all(20 < count < 140 for count in counts), "a quarter, a half and a quarter of 200"
    for one, lines in everything.items():
        kept = [line for line in lines if one == path("/r/k") or turn[line[0][1]] < 2]
        if one == path("/r/a/b"):
            kept = [line for line in kept if turn[line[0][1]] == 0]
        assert some.get(one, []) == kept
    assert walked(body, turns) == (some, left_out), "the same again"


def test_elements_below_a_split_take_no_turns() -> None:
    shared = SharedPaths()
    shared.hold({"1": {path("/r/a/b"): True}})
    walk = shared.start(ElementTurns(("r", "a"), (), ()))
    walk.add(0, b"<a><b>1</b></a>", ("r",), 5)
    assert len(walk.tables()[path("/r/a/b")]) == 1
