"""No compilation at run time: after the set-up, queries of every kind run in a fresh process without a compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fishweir.cli.common import kernels_marker, suggest_set_up
from fishweir.evaluate.precompile import recorded

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_fresh_process_compiles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FISHWEIR_CACHE", str(tmp_path / "cache"))
    suggest_set_up()
    assert "`fishweir set-up` compiles them once" in capfd.readouterr().err
    run("fishweir", "set-up", "--no-spark")
    suggest_set_up()
    assert (kernels_marker().exists(), capfd.readouterr().err) == (True, "")
    assert run("tests.engine.every_kernel", str(tmp_path / "home")).split() == []


def test_the_list_has_kernels_of_each_part() -> None:
    parts = {".".join(line.split(" ")[0].split(".")[2:4]) for line in recorded()}
    assert {"join.hits", "select.twig_kernels", "select.boxes", "witnesses.automaton", "index.pattern_kernels"} <= parts
