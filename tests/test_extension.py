"""Extension from outside: a condition, an action and a format of sources, added without touching the package."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fishweir
from fishweir import Condition, IndexFactory, testing
from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import Shape, Source, StreamDefinition
from fishweir.algebra.oracle import evaluate, selects
from fishweir.engine.weir import Weir
from fishweir.errors import QueryError, QuerySyntaxError, SourceError
from fishweir.evaluate.index.constants import Equal, Slices
from fishweir.evaluate.statistics import PathStatistics
from fishweir.evaluate.witnesses.path_tables import PathTable
from fishweir.intake import StreamLog, documents_batch
from fishweir.pipeline.result import Result

# A condition: its meaning, an index, an estimate, a keyword.


@dataclass(frozen=True)
class Prefixes:
    """Finds the constants that a value begins with: looks up the value's prefixes of each of their lengths."""

    constants: pa.LargeStringArray

    @cached_property
    def equal(self) -> Equal:
        return Equal.build(self.constants)

    @cached_property
    def lengths(self) -> list[int]:
        return sorted({len(text) for text in self.constants.to_pylist()})

    def look_up(self, values: PathTable) -> Slices:
        texts = values.texts.to_pylist()
        cut = [(row, text[:n]) for row, text in enumerate(texts) for n in self.lengths if n <= len(text)]
        rows = np.array([row for row, _ in cut], dtype=np.int64)
        keys = pa.array([key for _, key in cut], pa.large_string())
        found = self.equal.look_up(PathTable(rows, np.empty((0, 0), np.int64), keys))
        return Slices(rows[found.row], found.lo, found.hi)


def begins_with(value: str, constant: str) -> bool:
    return value.startswith(constant)


def shares(column: pa.LargeStringArray, known: PathStatistics) -> np.ndarray:
    sample = known.sample or ("",)
    return np.array([sum(value.startswith(text) for value in sample) / len(sample) for text in column.to_pylist()])


BEGINS = Condition("begins", begins_with, keyword="beginswith", selectivity=0.02)
INDEX = IndexFactory(order=Equal.order, build=Prefixes, selectivities=shares)


@pytest.fixture(params=[INDEX, None], ids=["index", "scan"])
def registered(request: pytest.FixtureRequest) -> Iterator[None]:
    fishweir.register_condition(BEGINS, request.param)
    yield
    fishweir.unregister_condition("begins")


TITLES = ["", "ro", "rock", "rock concert", "Rock", "r", "jazz", "jazz rock", "ja"]
LANGUAGES = (
    "from S as $x where $x[title beginswith '{0}' and not title beginswith '{1}'];",
    "select title from S where title beginswith '{0}' and title not beginswith '{1}';",
    "select title from S where title beginswith '{0}' or not (title beginswith '{1}' and price > 2);",
    "S//item[title beginswith '{0}'][price > 2];",
    "S//item[title beginswith '{0}']->a;",
)
JOIN = "S//item[title beginswith '{0}']//title->a JOIN{{a = b and b beginswith '{1}', 10}} S//item//title->b;"


def items(count: int) -> list[str]:
    draw = random.Random(count)
    parts = (draw.choices(TITLES, k=draw.choice([0, 1, 1, 2])) for _ in range(count))
    titles = ("".join(f"<title>{title}</title>" for title in some) for some in parts)
    return [f"<item>{title}<price>{draw.randrange(5)}</price></item>" for title in titles]


def expected(weir: Weir, name: str, documents: list[Document]) -> set[str]:
    """The documents of a query's results, by the naive evaluator."""
    query = weir.catalog.query(name)
    assert query is not None
    shape, constants = query.shape, query.constants
    if isinstance(shape, Shape):
        return {document.id for document in documents if evaluate(shape, constants, document)}
    return {document.id for document in documents if selects(shape, constants, Source("S"), document)}


def check(weir: Weir, names: list[str], documents: list[Document]) -> None:
    found: dict[str, set[str]] = {name: set() for name in names}
    for result in weir.results():
        found.setdefault(result.query, set()).update(result.documents)
    assert {name: found[name] for name in names} == {name: expected(weir, name, documents) for name in names}
    assert any(found.values())


@pytest.mark.usefixtures("registered")
def test_a_condition_in_three_languages(tmp_path: Path) -> None:
    """Hundreds of queries give what the naive evaluator gives, in every language, before and after a restart."""
    bodies = items(60)
    documents = [Document(f"S-{i}", 0.0, parse_document(body.encode())) for i, body in enumerate(bodies, 1)]
    pairs = [(a, b) for a in ("ro", "rock", "ja", "R", "x") for b in ("rock", "", "jazz ")]
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S;")
        names = [name for a, b in pairs for text in LANGUAGES for name in weir.execute(text.format(a, b))]
        weir.publish("S", bodies[:30])
        weir.step()
    with testing.open(tmp_path / "home") as weir:
        weir.publish("S", bodies[30:])
        weir.step()
        check(weir, names, documents)
        assert "title begins" in weir.explain(names[0])


@pytest.mark.usefixtures("registered")
def test_a_condition_with_others_and_in_a_join(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S;")
        (both,) = weir.execute("S//item[title beginswith 'ro'][price = 2];")
        (joined,) = weir.execute(JOIN.format("ro", "rock"))
        bodies = [f"<item><title>{title}</title><price>2</price></item>" for title in ("rock", "rock", "rom", "jazz")]
        weir.publish("S", bodies, timestamps=[1.0, 2.0, 3.0, 4.0])
        weir.step()
        assert [result.documents for result in weir.results(both)] == [["S-1"], ["S-2"], ["S-3"]]
        assert [set(result.documents) for result in weir.results(joined)] == [{"S-1", "S-2"}] * 2


def test_a_condition_on_the_workers_of_spark(spark_weir: Weir) -> None:
    """Tasks bring the registrations of this process to the workers: functions of a module by name, others by value."""
    weir = spark_weir
    fishweir.register_condition(BEGINS, INDEX)
    fishweir.register_condition(Condition("ends", lambda value, constant: value.endswith(constant)))
    try:
        weir.execute("create stream S;")
        names = [name for text in LANGUAGES for name in weir.execute(text.format("ro", "rock"))]
        names += weir.execute("select title from S where title ends 'ck'; S//item[title ends 'rt'];")
        bodies = items(20)
        weir.publish("S", bodies)
        weir.run(until_idle=True)
        documents = [Document(f"S-{i}", 0.0, parse_document(body.encode())) for i, body in enumerate(bodies, 1)]
        check(weir, names, documents)
    finally:
        fishweir.unregister_condition("begins")
        fishweir.unregister_condition("ends")


@pytest.mark.parametrize("text", [text.format("a", "b") for text in (*LANGUAGES, JOIN)])
def test_a_keyword_is_known_while_its_condition_is(tmp_path: Path, text: str) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S;")
        with pytest.raises(QuerySyntaxError, match="beginswith"):
            weir.execute(text)
        fishweir.register_condition(BEGINS)
        try:
            assert weir.execute(text)
        finally:
            fishweir.unregister_condition("begins")
        with pytest.raises(QuerySyntaxError, match="beginswith"):
            weir.execute(text.replace("'a'", "'c'"))


def test_a_home_names_the_missing_condition(tmp_path: Path) -> None:
    fishweir.register_condition(BEGINS)
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S; select title from S where title beginswith 'a';")
    fishweir.unregister_condition("begins")
    with testing.open(tmp_path / "home") as weir:
        weir.publish("S", ["<item><title>ab</title></item>"])
        with pytest.raises(QueryError, match="the condition 'begins' is not registered"):
            weir.step()


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (Condition("like", begins_with), "'like' is built in"),
        (Condition("=", begins_with, keyword="same"), "'=' is built in"),
        (Condition("mine", begins_with, keyword="contains"), "is already the keyword of the condition 'contains'"),
        (Condition("mine", begins_with, keyword="and"), "cannot be the keyword"),
        (Condition("mine", begins_with, keyword="two words"), "cannot be the keyword"),
    ],
)
def test_conditions_that_are_refused(condition: Condition, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        fishweir.register_condition(condition)


# An action: one line per result after a prefix, exactly once.


class Note:
    def __init__(self, path: str, prefix: str = "") -> None:
        self.path, self.prefix = Path(path), prefix

    def position(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def rewind(self, position: int) -> None:
        os.truncate(self.path, position)

    def deliver(self, results: list[Result]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{self.prefix}{json.dumps(result.output)}\n" for result in results)


# A source: the lines of a file that grows.


class Lines:
    def __init__(self, stream: StreamDefinition, log: StreamLog, base: Path) -> None:
        self.path, self.log = base / str(stream.path), log
        self.trouble: str | None = None
        self.working = False
        self.taken: int = log.newest("lines") or 0

    def poll(self, now: float) -> Iterator[int]:
        try:
            new = self.path.read_text(encoding="utf-8").splitlines()[self.taken :]
            self.trouble = None
        except OSError as error:
            self.trouble = f"stream {self.log.stream.name}: {error}"
            return
        if new:
            self.taken += len(new)
            batch = documents_batch(self.log.stream, [{"line": line} for line in new], now=now)
            self.log.append(batch, {"lines": self.taken})
            yield len(new)


def check_lines(stream: StreamDefinition, base: Path) -> None:
    if [name for name, _ in stream.columns] != ["line"]:
        raise SourceError(f"stream {stream.name}: format lines has one column, line")


@pytest.fixture
def lines() -> Iterator[None]:
    fishweir.register_source("Lines", Lines, check_lines)
    yield
    fishweir.unregister_source("lines")


@pytest.mark.usefixtures("lines")
def test_a_source_and_an_action(tmp_path: Path) -> None:
    """From a file to a file, over a restart."""
    given, noted = tmp_path / "given.txt", tmp_path / "noted.txt"
    given.write_text("blue\nred\n", encoding="utf-8")
    script = f"""
        create stream R (line string) from '{given}' format lines;
        create query long as select line from R where line like '____%' do note '{noted}' '> ';
    """
    for _ in range(2):
        with testing.open(tmp_path / "home") as weir:
            weir.register_action("note", Note)
            weir.execute(script)
            weir.run(until_idle=True)
        assert noted.read_text(encoding="utf-8") == '> {"line": "blue"}\n'
    with given.open("a", encoding="utf-8") as file:
        file.write("pink\nyellow\n")
    with testing.open(tmp_path / "home") as weir:
        weir.register_action("note", Note)
        weir.run(until_idle=True)
        assert [result.output["line"] for result in weir.results("long")] == ["blue", "pink", "yellow"]
    assert noted.read_text(encoding="utf-8").splitlines()[1:] == ['> {"line": "pink"}', '> {"line": "yellow"}']


def test_sources_and_actions_that_are_refused(tmp_path: Path) -> None:
    declared = "create stream R (line string) from 'x' format lines;"
    with testing.open(tmp_path / "home") as weir:
        with pytest.raises(QueryError, match="'lines' is not a format: expected xml"):
            weir.execute(declared)
        fishweir.register_source("lines", Lines, check_lines)
        try:
            with pytest.raises(SourceError, match="format lines has one column, line"):
                weir.execute(declared.replace("line string", "text string"))
            weir.execute(declared)
        finally:
            fishweir.unregister_source("lines")
        with pytest.raises(SourceError, match="'csv' is built in"):
            fishweir.register_source("csv", Lines)
        with pytest.raises(QueryError, match="'append' is built in"):
            weir.register_action("append", Note)
        with pytest.raises(QueryError, match="cannot be the name of an action"):
            weir.register_action("two words", Note)
        weir.register_action("note", Note)
        with pytest.raises(QueryError, match="note does not take"):
            weir.execute("create stream S; S//a do note;")
