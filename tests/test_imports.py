"""The direction of imports: only towards the algebra, and Spark only in pipeline/."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fishweir.cli.bench import EXTRA

ROOT = Path(__file__).parent.parent / "src" / "fishweir"
FILES = sorted(ROOT.rglob("*.py"))
LONGEST_FILE = 400

LEAVES = {"errors", "garbage", "guard", "jit", "records", "sealed"}
STAGES: dict[str, set[str]] = {
    "errors": set(),
    "garbage": set(),
    "sealed": set(),
    "records": set(),
    "java": set(),
    "guard": set(),
    "jit": set(),
    "algebra": set(),
    "languages": {"algebra"},
    "evaluate": {"algebra"},
    "catalog": {"algebra"},
    "intake": {"algebra"},
    "shedding": {"algebra"},
    "pipeline": {"algebra", "evaluate", "intake", "java", "shedding"},
    "delivery": {"algebra", "catalog", "evaluate", "pipeline"},
}
SEE_ALL = {"__init__", "__main__", "engine", "cli", "papers", "testing"}


EVALUATOR: dict[str, set[str]] = {
    "arrays": set(),
    "byte_blocks": set(),
    "precompile": set(),
    "matches": {"arrays"},
    "results": {"arrays"},
    "witnesses": {"arrays", "byte_blocks"},
    "statistics": {"witnesses"},
    "index": {"arrays", "witnesses", "statistics"},
    "watermarks": set(),
    "query_rows": set(),
    "outline": set(),
    "group": {"arrays", "matches", "outline", "query_rows", "results", "witnesses", "statistics", "watermarks"},
    "bundles": {"group", "statistics"},
    "select": {
        "arrays",
        "matches",
        "results",
        "witnesses",
        "statistics",
        "index",
        "group",
        "bundles",
        "query_rows",
    },
    "join": {
        "arrays",
        "matches",
        "outline",
        "results",
        "witnesses",
        "statistics",
        "index",
        "group",
        "query_rows",
        "select",
        "watermarks",
    },
    "distinct": {
        "arrays",
        "matches",
        "outline",
        "results",
        "witnesses",
        "statistics",
        "group",
        "bundles",
        "query_rows",
        "select",
        "watermarks",
    },
    "plan": {
        "arrays",
        "matches",
        "results",
        "witnesses",
        "statistics",
        "index",
        "group",
        "bundles",
        "query_rows",
        "select",
        "join",
        "distinct",
    },
}
"""Which parts of the evaluator may import which others."""


def unit_of(file: Path) -> str:
    """The stage or top-level module that a file belongs to."""
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_modules(source: str, package: list[str]) -> set[str]:
    """Absolute names of everything that a source file of this package imports, anywhere in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


@cache
def imports_of(file: Path) -> set[str]:
    package = ["fishweir", *file.relative_to(ROOT).parent.parts]
    return imported_modules(file.read_text(encoding="utf-8"), package)


def units_imported(modules: set[str]) -> set[str]:
    """The parts of fishweir among some modules; a name of the package itself counts as `__init__`."""
    known = {unit_of(file) for file in FILES}
    names = {module.split(".")[1] if "." in module else "__init__" for module in modules if is_ours(module)}
    return {name if name in known else "__init__" for name in names}


def is_ours(module: str) -> bool:
    return module.split(".")[0] == "fishweir"


def faults(files: Iterable[Path], wrong: Callable[[Path], Any]) -> dict[str, Any]:
    """The faults of each file that has any."""
    found = {file.relative_to(ROOT).as_posix(): wrong(file) for file in files}
    return {name: what for name, what in found.items() if what}


def files_of(keep: Callable[[str], bool]) -> list[Path]:
    """The files of some parts."""
    return [file for file in FILES if keep(unit_of(file))]


def test_finds_imports_of_every_form() -> None:
    source = """
import pyspark.sql
from . import nodes
from ..errors import QueryError
def late():
    from fishweir.engine import Engine
"""
    assert imported_modules(source, ["fishweir", "algebra"]) == {
        "pyspark.sql",
        "fishweir.algebra.nodes",
        "fishweir.errors.QueryError",
        "fishweir.engine.Engine",
    }


def test_a_name_of_the_package_itself_counts_as_all_of_it() -> None:
    assert units_imported({"fishweir", "fishweir.open", "fishweir.algebra.nodes", "numpy"}) == {
        "__init__",
        "algebra",
    }


def test_every_part_is_listed() -> None:
    unplaced = {unit_of(file) for file in FILES} - STAGES.keys() - SEE_ALL
    assert not unplaced, f"say in STAGES what {sorted(unplaced)} may import"


def test_imports_go_towards_the_algebra() -> None:
    def forbidden(file: Path) -> set[str]:
        unit = unit_of(file)
        return units_imported(imports_of(file)) - STAGES[unit] - LEAVES - {unit}

    assert faults(files_of(lambda unit: unit in STAGES), forbidden) == {}


def imported_of(file: Path, packages: Collection[str]) -> set[str]:
    return {module for module in imports_of(file) if module.split(".")[0] in packages}


def test_only_the_pipeline_imports_spark() -> None:
    others = files_of(lambda unit: unit != "pipeline")
    assert faults(others, lambda file: imported_of(file, {"pyspark", "py4j"})) == {}


def test_only_the_papers_import_the_bench_extra() -> None:
    assert faults(files_of(lambda unit: unit != "papers"), lambda file: imported_of(file, EXTRA)) == {}


def test_only_oracles_and_experiments_import_an_oracle() -> None:
    """Code that is compared with an oracle must not use it."""
    others = [f for f in FILES if not f.stem.endswith("oracle") and not {"experiment", "papers"} & {*f.parts}]
    algorithms = [f for f in files_of(lambda unit: unit == "papers") if f.parent.name != "experiment"]

    def oracles(file: Path) -> set[str]:
        return {module for module in imports_of(file) if "oracle" in module}

    assert faults([*others, *algorithms], oracles) == {}


def test_only_the_registry_and_the_rules_know_the_kinds() -> None:
    """Everything else asks a group, a strategy or a stage through the protocol."""
    folders = "select", "join", "distinct"
    listing = {"evaluate/plan/registry.py", "evaluate/plan/rules.py"}
    known = {f"fishweir.evaluate.{folder}" for folder in folders}
    others = [
        f
        for f in FILES
        if unit_of(f) != "papers"
        and f.relative_to(ROOT).as_posix() not in listing
        and f.relative_to(ROOT).parts[1:2] not in {(folder,) for folder in folders}
    ]

    def kinds(file: Path) -> set[str]:
        return {module for module in imports_of(file) if ".".join(module.split(".")[:3]) in known}

    assert faults(others, kinds) == {}


@pytest.mark.parametrize("arguments", ["--help", "bench --help"])
def test_papers_are_not_imported_unless_requested(arguments: str) -> None:
    """Runs in a separate process, in which nothing else has been imported."""
    script = f"""
import sys
import fishweir
from fishweir.cli import app
app({arguments.split()}, standalone_mode=False)
print(*sys.modules, sep="\\n", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert "fishweir.cli" in loaded
    assert not [module for module in loaded if module.startswith("fishweir.papers")]
    assert not [module for module in loaded if module.split(".")[0] in EXTRA]


HEAVY = {
    "email", "httpx", "lxml", "numba", "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "rich", "sqlalchemy",
    "sqlglot", "statistics", "zoneinfo",
}  # fmt: skip
"""Packages that a short command must not load unless it needs them: importing takes most of its time."""


def loaded_by(*commands: list[str]) -> set[str]:
    """The packages that a process has loaded after some commands."""
    script = f"""
import sys
from fishweir.cli import app
for command in {list(commands)!r}:
    app(command, standalone_mode=False)
print(*sys.modules, sep="\\n", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {module.split(".")[0] for module in done.stderr.split()}


REGISTERED = """
create stream S;
create query x as S//a->x;
create feed f from S as $s where $s[title contains 'rock'] ;
create query y as for $a in stream('S')/list where $a/price > 100 return <large>{$a//name}</large>;
create n where <list><price>$p</></> in "S", $p < 100 construct $p do append 'box.jsonl';
"""


def test_registering_and_status_load_neither_evaluator_nor_database_library(tmp_path: Path) -> None:
    home = ["--home", str(tmp_path)]
    loaded = loaded_by(["execute", REGISTERED, *home], ["status", *home], ["list", *home])
    assert "sqlite3" in loaded
    assert not loaded & HEAVY


def test_registering_sql_loads_its_parser(tmp_path: Path) -> None:
    statements = "create stream R (x int); create query q as select x from R where x > 3 and x < 9"
    loaded = loaded_by(["execute", statements, "--home", str(tmp_path)])
    assert loaded & HEAVY <= {"sqlglot", "email"}, "sqlglot looks for plug-ins, which loads email"


def test_no_file_is_too_long() -> None:
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert faults(FILES, lambda file: lines[file] > LONGEST_FILE) == {}, "a file that long should be a folder"


def test_the_evaluator_has_an_order() -> None:
    def forbidden(file: Path) -> set[str]:
        part = file.relative_to(ROOT).parts[1].removesuffix(".py")
        modules = (module.split(".") for module in imports_of(file) if module.startswith("fishweir.evaluate."))
        return {module[2] for module in modules} - EVALUATOR[part] - {part}

    assert faults([f for f in files_of(lambda unit: unit == "evaluate") if f.stem != "__init__"], forbidden) == {}


def test_there_are_no_import_cycles() -> None:
    names = {"fishweir." + ".".join(f.relative_to(ROOT).with_suffix("").parts): f for f in FILES}
    graph = {name: {m for m in map(_module(names), imports_at_run_time(f)) if m} for name, f in names.items()}
    done: set[str] = set()
    path: list[str] = []

    def visit(name: str) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            path.append(name)
            for other in sorted(graph[name]):
                visit(other)
            done.add(path.pop())

    for name in graph:
        visit(name)


def _module(names: dict[str, Path]) -> Callable[[str], str | None]:
    """The module that an imported name denotes or belongs to."""
    return lambda name: name if name in names else name.rpartition(".")[0] if name.rpartition(".")[0] in names else None


def imports_at_run_time(file: Path) -> set[str]:
    """The imports that are executed when a module is imported: neither those in functions nor those for type
    checkers."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    package = ["fishweir", *file.relative_to(ROOT).parent.parts]
    return imported_modules("\n".join(map(ast.unparse, top)), package)
