"""The command line on homes prepared without Spark: what it prints, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fishweir import testing
from fishweir.cli import app

SCRIPT = """create stream orders (customer string, shares int);
create large where <orders><customer>$c</><shares>$n</></> in "orders", $n >= 900 construct <call>$c</call>;
where <orders><shares>$n</></> in "orders", $n < 10 construct $n;"""


def invoke(*arguments: str, given: str | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), input=given)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands without --home use the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def evaluated(here: Path) -> Path:
    """A home with two results of `large` and one document set aside."""
    with testing.open(here / "home", clock=testing.Clock(86_400.0)) as weir:
        weir.execute(SCRIPT)
        rows = [
            {"customer": "Ada", "shares": 900},
            {"customer": "Bob", "shares": 899},
            {"customer": "é<", "shares": 901},
        ]
        weir.publish("orders", [*rows, {"customer": "Eve", "shares": "many"}], timestamps=[1.0, 2.0, 3.0, 4.0])
        weir.step()
    return here / "home"


def test_execute_prints_the_names(here: Path) -> None:
    done = invoke("execute", SCRIPT)
    assert (done.exit_code, done.stdout) == (0, "large\nq1\n")
    assert (here / "fishweir-home" / "catalog.db").exists()
    again = invoke("execute", SCRIPT)
    assert (again.exit_code, again.stdout) == (0, "large\nq1\n")


def test_execute_reads_files_and_standard_input(here: Path) -> None:
    (here / "script.txt").write_text(SCRIPT)
    assert invoke("execute", "--file", "script.txt", "--home", "one").stdout == "large\nq1\n"
    assert invoke("execute", "-f", "-", "--home", "two", given=SCRIPT).stdout == "large\nq1\n"
    missing = invoke("execute", "-f", "missing.txt")
    assert missing.exit_code == 1
    assert "cannot read the script missing.txt" in missing.stderr
    named = invoke("execute", "script.txt")
    assert named.exit_code == 2
    assert "is a file" in named.stderr


def test_names_are_printed_as_they_are() -> None:
    """No markup, no emoji, no line breaks of a narrow terminal."""
    name = "[red]:warning:" + "x" * 300
    done = invoke("execute", f"create stream s; create '{name}' where <s/> element_as $s in 's' construct $s;")
    assert done.stdout == f"{name}\n"


def test_a_syntax_error_shows_the_place() -> None:
    bad = "create stream s;\ncreate a\n  where <s>$v</> inn 's' construct $v;"
    done = invoke("execute", bad)
    assert (done.exit_code, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: line 3, column 18: query a: ")
    assert lines[1] == "    where <s>$v</> inn 's' construct $v;"
    assert lines[2] == " " * (2 + 17) + "^"
    nothing = invoke("status")
    assert "0 queries over 0 streams" in nothing.stdout


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        ("create a where <r/> element_as $r in 'nowhere' construct $r;", "nowhere"),
        ("create stream s; create a where <s/> element_as $s in 's' construct $s do fax 'x';", "fax"),
        ("delete nobody;", "nobody"),
    ],
)
def test_other_errors_exit_with_one(statements: str, reason: str) -> None:
    done = invoke("execute", statements)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert reason in done.stderr


def test_explain(evaluated: Path) -> None:
    of_one, of_all = invoke("explain", "large", "--home", str(evaluated)), invoke("explain", "--home", str(evaluated))
    assert of_one.exit_code == of_all.exit_code == 0
    assert "    signature orders.shares >= number in orders\n" in of_one.stdout
    assert of_all.stdout.startswith("2 groups in 1 segments\n")


def test_status(evaluated: Path) -> None:
    engine = invoke("status", "--home", str(evaluated))
    assert engine.exit_code == 0
    assert "version 3: 2 queries over 1 streams" in engine.stdout
    assert "stream orders: 4 arrived, 4 evaluated, 1 set aside" in engine.stdout
    query = invoke("status", "large", "--home", str(evaluated))
    assert query.stdout.splitlines()[:2] == [
        "query large: alive, 2 results",
        "  fired     1 micro-batches, last at 1970-01-02T00:00:00+00:00",
    ]


def test_results(evaluated: Path) -> None:
    done = invoke("results", "large", "--home", str(evaluated))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["query"], row["documents"], row["timestamp"], row["output"]) for row in rows] == [
        ("large", ["orders-1"], 1.0, "<call>Ada</call>"),
        ("large", ["orders-3"], 3.0, "<call>é&lt;</call>"),
    ]
    assert rows[0]["bindings"] == {"c": {"document": "orders-1", "node": 1, "value": "Ada"}}
    assert invoke("results", "--home", str(evaluated)).stdout == done.stdout, "the other query has none"
    assert invoke("results", "q1", "--home", str(evaluated)).stdout == ""


def test_results_of_a_dropped_query_stay(evaluated: Path) -> None:
    invoke("execute", "delete large;", "--home", str(evaluated))
    assert len(invoke("results", "large", "--home", str(evaluated)).stdout.splitlines()) == 2
    assert "query large: dropped, 2 results" in invoke("status", "large", "--home", str(evaluated)).stdout
    assert "dropped   by change 4" in invoke("explain", "large", "--home", str(evaluated)).stdout


@pytest.mark.parametrize("command", ["explain", "status", "results"])
def test_an_unknown_home_is_not_created(here: Path, command: str) -> None:
    done = invoke(command, "--home", "nowhere")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "error: there is no home at nowhere; choose another with --home" in done.stderr
    assert not (here / "nowhere").exists()


@pytest.mark.parametrize("command", ["explain", "status", "results"])
def test_an_unknown_query(evaluated: Path, command: str) -> None:
    done = invoke(command, "nobody", "--home", str(evaluated))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "there is no query nobody" in done.stderr


def test_a_home_that_is_a_file(here: Path) -> None:
    (here / "file").write_text("")
    done = invoke("execute", "create stream s;", "--home", "file")
    assert done.exit_code == 1
    assert "as a home" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("execute",),
        ("execute", "create stream s;", "-f", "x"),
        ("status", "--nonsense"),
        ("nonsense",),
        ("bench", "nonsense"),
        ("run",),
        ("run", "x", "--documents-per-batch", "many"),
    ],
)
def test_bad_options_exit_with_two(here: Path, arguments: tuple[str, ...]) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert "Usage" in done.stderr
    assert not list(here.iterdir()), "nothing was made"


def test_bench_says_what_to_install(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ahocorasick", "duckdb"):
        monkeypatch.setitem(sys.modules, module, None)
    done = invoke("bench", "roses", "--quick")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: experiments need ahocorasick, duckdb: pip install 'fishweir[bench]'\n"
    assert not list(here.iterdir()), "nothing was made"


def test_as_a_process(here: Path) -> None:
    """The exit code and both outputs as a shell sees them."""

    def fishweir(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fishweir", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=here, check=False)

    done = fishweir("execute", "create a where <")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: line 1, column ")
    assert "Traceback" not in done.stderr
    unknown = fishweir("-v", "stauts")
    assert unknown.returncode == 2
    assert "status" in unknown.stderr, "all commands are known to the message"
