"""The command, killed with SIGKILL at random moments and restarted, produces each result once."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fishweir.algebra.documents import Document, parse_document
from fishweir.algebra.nodes import CreateQuery
from fishweir.algebra.oracle import evaluate
from fishweir.languages.script import parse_script

KILLS, MOST = 4, 3
"""The number of kills, and the maximum number of micro-batches before each, so that a kill is never too late on a fast
machine.
"""
FILES, ROWS = 30, 40

SCRIPT = """
create stream quotes from 'in' format xml split on Quote timestamp T;
create equal where <Quotes><Quote><Symbol>"S3"</></> element_as $g </> in "quotes" construct $g;
create above where <Quotes><Quote><Price>$p</></></> in "quotes", $p > 90 construct <up>$p</up> do append 'up.jsonl';
create between where <Quote><Price>$p</><Symbol>$s</></> in "quotes", $p >= 10, $p < 20 construct $s;
create query again as quotes//Quote[Symbol->s][Price->p] FOLLOWED BY{s = s2 AND p = p2, 100}
    quotes//Quote[Symbol->s2][Price->p2];
create query noted as from quotes as $q join last 200 items on quotes with $q[Symbol = window.Symbol and
    Price = window.Price];
create query three as select a.T as t from quotes [range 20] as a, quotes [range 20] as b, quotes [range 20] as c
    where a.Symbol = b.Symbol and b.Price = c.Price and a.T < b.T and b.T < c.T;
"""
REACH, NOTED, SHORT = 100, 200, 20
JOINS = ("again", "noted", "three")


def write_input(folder: Path, pick: random.Random) -> dict[str, str]:
    """Writes files of quotes and returns the documents by their expected ids."""
    (folder / "in").mkdir()
    documents = {}
    for i in range(FILES):
        rows = [
            f"<Quote><T>{i * ROWS + j}</T><Symbol>S{pick.randint(1, 9)}</Symbol>"
            f"<Price>{pick.randint(0, 99)}</Price></Quote>"
            for j in range(ROWS)
        ]
        (folder / "in" / f"{i:03d}.xml").write_text(f"<Quotes>{''.join(rows)}</Quotes>")
        documents |= {f"quotes-{len(documents) + 1 + j}": row for j, row in enumerate(rows)}
    return documents


def expected(documents: dict[str, str]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for statement in parse_script(SCRIPT):
        if not isinstance(statement, CreateQuery) or statement.name in JOINS:
            continue
        for id, text in documents.items():
            document = Document(id, 0.0, parse_document(text.encode()), ("Quotes",))
            found[statement.name, id] += len(evaluate(statement.shape, statement.constants, document))
    listed = list(documents.items())
    return +found + joined(listed) + noted(listed) + combined(documents)


def joined(documents: list[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Pairs of quotes with the same symbol and price, at most REACH apart: their times are their positions."""
    what = [text.partition("</T>")[2] for _, text in documents]
    return Counter(
        ("again", f"{documents[i][0]} {documents[j][0]}")
        for j in range(len(documents))
        for i in range(max(0, j - REACH), j)
        if what[i] == what[j]
    )


def noted(documents: list[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Quotes with the similar ones among the NOTED newest before them."""
    what = [text.partition("</T>")[2] for _, text in documents]
    found: Counter[tuple[str, str]] = Counter()
    for j, (id, _) in enumerate(documents):
        met = [documents[i][0] for i in range(max(0, j - NOTED), j) if what[i] == what[j]]
        if met:
            found["noted", " ".join([id, *sorted(met)])] += 1
    return found


def combined(documents: dict[str, str]) -> Counter[tuple[str, str]]:
    """Three quotes in order: the first two share the symbol, the last two the price; they are at most SHORT apart."""
    cells = [re.findall(r"<Symbol>(.*)</Symbol><Price>(.*)</Price>", text)[0] for text in documents.values()]
    ids = list(documents)
    return Counter(
        ("three", f"{ids[i]} {ids[j]} {ids[k]}")
        for k in range(len(ids))
        for j in range(max(0, k - SHORT), k)
        if cells[j][1] == cells[k][1]
        for i in range(max(0, k - SHORT), j)
        if cells[i][0] == cells[j][0]
    )


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "fishweir", "run", "script.txt", "--home", "home", "--until-idle"]
    with (folder / "run.log").open("ab") as log:
        options = ["--documents-per-batch", "80", *more]
        return subprocess.Popen([*command, *options], cwd=folder, stdout=log, stderr=log, start_new_session=True)


def committed(folder: Path) -> int:
    return len(list((folder / "home/results/commits").glob("*.json")))


def kill_after(folder: Path, commits: int, pause: float) -> None:
    """Lets the command commit a number of micro-batches, waits a moment, and kills it with its child processes."""
    before, process = committed(folder), start(folder)
    while committed(folder) < before + commits and process.poll() is None:
        time.sleep(0.02)
    ends = time.monotonic() + pause
    while time.monotonic() < ends and committed(folder) < before + MOST:
        time.sleep(0.002)
    subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
    process.send_signal(signal.SIGKILL)
    process.wait()


def counted(lines: str) -> Counter[tuple[str, str]]:
    rows = [json.loads(line) for line in lines.splitlines()]
    return Counter((row["query"], " ".join([*row["documents"], *_annotation(row)])) for row in rows)


def _annotation(row: dict[str, Any]) -> list[str]:
    return sorted(bound["document"] for name, bound in row["bindings"].items() if name.startswith("window"))


def test_killed_at_random_moments(tmp_path: Path) -> None:
    pick = random.Random(20)
    documents = write_input(tmp_path, pick)
    (tmp_path / "script.txt").write_text(SCRIPT)
    for _ in range(KILLS):
        kill_after(tmp_path, pick.randint(0, 2), pick.uniform(0, 1.5))
    assert committed(tmp_path) < FILES * ROWS / 80, "the kills came too late to test anything"
    final = start(tmp_path, "--results", "results.jsonl")
    assert final.wait(timeout=600) == 0, (tmp_path / "run.log").read_text()[-2000:]
    wanted = expected(documents)
    assert counted((tmp_path / "results.jsonl").read_text()) == wanted
    above = Counter({key: n for key, n in wanted.items() if key[0] == "above"})
    assert counted((tmp_path / "up.jsonl").read_text()) == above
