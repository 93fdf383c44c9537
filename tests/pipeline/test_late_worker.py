"""On a machine with too much to do Spark gives up waiting for a Python process: the job begins again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

LATE = """#!/bin/sh
case "$*" in *python_streaming_source_runner*) [ -e "{mark}" ] || {{ touch "{mark}"; sleep 12; }} ;; esac
exec "{python}" "$@"
"""


def test_a_process_that_comes_too_late(tmp_path: Path) -> None:
    mark, python = tmp_path / "was-late", tmp_path / "python"
    python.write_text(LATE.format(mark=mark, python=sys.executable))
    python.chmod(0o755)
    (tmp_path / "in.xml").write_text("<r><a>1</a><a>2</a></r>")
    (tmp_path / "script.txt").write_text("create stream S from 'in.xml' split on //a; create query q as S/a")
    command = [sys.executable, "-m", "fishweir", "run", "script.txt", "--until-idle", "--results", "found.jsonl"]
    environment = os.environ | {"PYSPARK_PYTHON": str(python)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert mark.exists()
    assert "restarting the query" in ran.stderr
    found = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert [row["documents"] for row in found] == [["S-1"], ["S-2"]]
