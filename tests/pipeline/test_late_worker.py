"""A Python process of Spark that does not start, or dies in the middle, costs a new pool but no results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BROKEN_ONCE = """#!/bin/sh
case "$*" in *pyspark.worker*) [ -e "{mark}" ] || {{ touch "{mark}"; exit 1; }} ;; esac
exec "{python}" "$@"
"""
DYING_ONCE = """
import os
from pathlib import Path

import fishweir

MARK = Path("{mark}")


def dies(value, constant):
    if not MARK.exists():
        MARK.touch()
        os._exit(9)
    return value == constant


if __name__ == "__main__":
    fishweir.register_condition(fishweir.Condition("dies", dies))
    with fishweir.open("home") as weir:
        weir.execute("create stream R (s string); create query q as select s from R where s dies 'x'")
        weir.publish("R", [{{"s": s}} for s in "xyx"])
        weir.run(until_idle=True)
        print([result.documents for result in weir.results("q")])
"""


def test_a_process_that_does_not_start(tmp_path: Path) -> None:
    mark, python = tmp_path / "was-broken", tmp_path / "python"
    python.write_text(BROKEN_ONCE.format(mark=mark, python=sys.executable))
    python.chmod(0o755)
    (tmp_path / "in.xml").write_text("<r><a>1</a><a>2</a></r>")
    (tmp_path / "script.txt").write_text("create stream S from 'in.xml' split on //a; create query q as S/a")
    command = [sys.executable, "-m", "fishweir", "run", "script.txt", "--until-idle", "--results", "found.jsonl"]
    environment = os.environ | {"PYSPARK_PYTHON": str(python)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert mark.exists()
    assert "starting new tasks" in ran.stderr
    found = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert [row["documents"] for row in found] == [["S-1"], ["S-2"]]


def test_a_process_that_dies_in_the_middle(tmp_path: Path) -> None:
    mark, program = tmp_path / "died", tmp_path / "program.py"
    program.write_text(DYING_ONCE.format(mark=mark))
    ran = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert mark.exists()
    assert "starting new tasks" in ran.stderr
    assert ran.stdout.strip() == "[['R-1'], ['R-3']]"
