"""Queries that are one path each have it as a constant: stored and planned in columns, with the same results."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fishweir import Condition, register_condition, testing, unregister_condition
from fishweir.algebra.construct import element_text
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import CreateQuery, Shape
from fishweir.algebra.oracle import Node, evaluate
from fishweir.catalog.preference_counts import preferences
from fishweir.engine.weir import Weir
from fishweir.errors import QueryError
from fishweir.languages.script import parse_script

TEMPLATE = "create query $name as S$path"


def step(draw: random.Random) -> str:
    return draw.choice(("/", "/", "//")) + draw.choice("abcd*")


def predicate(draw: random.Random) -> str:
    inner = draw.choice((".", "a", "@k", "b/c", "*//@k"))
    if inner != "." and draw.random() < 0.2:
        return f"[{inner}]"
    literal = draw.choice(("'1'", '"2"', "2", "-1.5")) if draw.random() < 0.7 else "3"
    return f"[ {inner} {draw.choice(('=', '!=', '<>', '<', '≥', '>'))} {literal}]"


def paths(seed: int, count: int) -> list[str]:
    draw, found = random.Random(seed), list[str]()
    while len(found) < count:
        steps = (step(draw) + (predicate(draw) if draw.random() < 0.4 else "") for _ in range(draw.randint(1, 4)))
        found.append("".join(steps) + ("/@k" if draw.random() < 0.2 else ""))
    return [*found, *(f"/a[b = '{i}']" for i in range(100))]  # one path that many queries share


def documents(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)

    def element(depth: int) -> str:
        name, key = draw.choice("abcd"), f' k="{draw.randint(0, 3)}"' if draw.random() < 0.4 else ""
        inner = "".join(element(depth - 1) for _ in range(draw.randint(0, 3))) if depth else ""
        return f"<{name}{key}>{inner or draw.randint(0, 3)}</{name}>"

    return [element(3) for _ in range(count)]


def shown(node: Node) -> str:
    """An attribute's value, or the element."""
    return node.value if "@" in node.id else element_text(node.element)


def by_oracle(path: str, bodies: list[str]) -> list[tuple[str, str]]:
    (query,) = parse_script(f"create query q as S{path}")
    assert isinstance(query, CreateQuery)
    assert isinstance(query.shape, Shape)
    (output,) = query.shape.output_variables
    found = []
    for number, body in enumerate(bodies, 1):
        document = Document(f"S-{number}", 0.0, parse_document(body.encode()))
        nodes = {b[output].id: b for b in evaluate(query.shape, query.constants, document)}
        found += [(document.id, shown(binding[output])) for binding in nodes.values()]
    return sorted(found)


def found_by(weir: Weir, names: set[str]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
    for result in weir.results():
        found[result.query].append((result.documents[0], str(result.output)))
    return {name: sorted(some) for name, some in found.items()}


def in_rows(weir: Weir, drawn: dict[str, str]) -> None:
    weir.register_many(TEMPLATE, [{"name": name, "path": path} for name, path in drawn.items()])


def in_a_script(weir: Weir, drawn: dict[str, str]) -> None:
    weir.execute(";\n".join(f"create query {name} as S{path}" for name, path in drawn.items()))


@pytest.mark.parametrize("register", [in_rows, in_a_script])
@pytest.mark.parametrize("count", [100, 1_000])
def test_results_are_those_of_the_oracle(tmp_path: Path, register, count: int) -> None:
    """A thousand queries bring their own segment; for a hundred, the job builds one."""
    drawn = {f"q{i}": path for i, path in enumerate(paths(count, count))}
    bodies = documents(3, 12)
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S")
        register(weir, drawn)
        dropped = [f"q{i}" for i in range(0, count, 7)]
        weir.drop_many(dropped)
        weir.publish("S", bodies[:6])
        weir.run(until_idle=True)
    with testing.open(tmp_path / "home") as weir:
        in_rows(weir, {"late": "//a"})
        weir.publish("S", bodies[6:])
        weir.run(until_idle=True)
        found = found_by(weir, {*drawn, "late"})
    late = [one for one in by_oracle("//a", bodies) if int(one[0][2:]) > 6]
    expected = {name: [] if name in dropped else by_oracle(path, bodies) for name, path in drawn.items()}
    assert found == {**expected, "late": late}
    assert sum(map(bool, expected.values())) > count / 4


def test_one_shape_is_stored_for_all_paths(tmp_path: Path) -> None:
    drawn = {f"q{i}": f"/a{i}[b = 'x{i}']/c" for i in range(100)}
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S")
        in_rows(weir, drawn)
        assert weir.catalog.database.scalar("select count(*) from shapes") == 1
        (written,) = parse_script("create query q7 as S/a7[b = 'x7']/c")
        stored = weir.catalog.query("q7")
        assert stored is not None
        assert (stored.shape, stored.constants) == (written.shape, written.constants)  # type: ignore[union-attr]
        assert len({shape for shape, *_ in preferences(weir.catalog.database)}) == 100
        assert "S: a7.b, a7.c | a7.b = " in weir.explain("q7")
        with pytest.raises(QueryError, match="q7 already exists"):
            in_rows(weir, {**drawn, "q7": "/other"})


def test_paths_stay_constants_after_a_condition_is_registered(tmp_path: Path) -> None:
    drawn = {f"q{i}": f"/a{i}/c" for i in range(100)}
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S")
        in_rows(weir, {name: path.replace("a", "b") for name, path in drawn.items()})
        weir.drop_many(list(drawn))
        register_condition(Condition("ends-in", lambda value, constant: value.endswith(constant)))
        try:
            weir.register_many(f"{TEMPLATE} do append 'x.jsonl'", [{"name": "other", "path": "/a/b"}])
            in_rows(weir, drawn)
            assert weir.catalog.database.scalar("select count(distinct shape) from queries where name <> 'other'") == 1
        finally:
            unregister_condition("ends-in")


def test_paths_are_checked_against_the_declared_stream(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S (x int)")
        with pytest.raises(QueryError, match="begin with <S>"):
            in_rows(weir, {**{f"q{i}": "/S/x" for i in range(100)}, "wrong": "/T/x"})
        assert weir.catalog.names() == []
