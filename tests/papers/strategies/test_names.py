"""Requesting strategies: names, errors, and imports only on request."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fishweir import testing
from fishweir.cli import app
from fishweir.errors import QueryError
from fishweir.papers.strategies import OFFERED, named_strategies


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in OFFERED.items() for name in names])
def test_every_name_has_a_strategy(kind: str, name: str) -> None:
    (strategy,) = named_strategies({kind: name})
    assert strategy.name == name
    assert import_module(strategy.module).STRATEGIES[name] is strategy


def test_unknown_names_are_errors(tmp_path: Path) -> None:
    kinds = ", ".join(OFFERED)
    with pytest.raises(QueryError, match=f"no kind of strategy sorts; there are: {kinds}"):
        testing.open(tmp_path, strategies={"sorts": "quick"})
    with pytest.raises(QueryError, match="no strategy selections=grid2; there are: sj-batch, sj-immediate, ibs"):
        testing.open(tmp_path, strategies={"selections": "grid2"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["ibs"], "--strategy ibs: write KIND=NAME, as in "),
        (["selections=ibs", "selections=sj-batch"], "selections=ibs is already requested"),
        (["selections=fast"], "there is no strategy selections=fast; there are: sj-batch, sj-immediate, ibs"),
    ],
)
def test_command_line_errors(options: list[str], message: str, tmp_path: Path) -> None:
    given = [part for option in options for part in ("--strategy", option)]
    done = CliRunner().invoke(app, ["run", "-", "--home", str(tmp_path / "home"), *given], input="")
    assert done.exit_code == 1
    assert message in done.stderr


def test_papers_are_imported_only_on_request(tmp_path: Path) -> None:
    script = f"""
import sys
from fishweir import testing
with testing.open({str(tmp_path / "home")!r}) as weir:
    weir.execute("create stream R (x int); create query q as select * from R where x > 1 and x < 9")
    weir.publish("R", [{{"x": 2}}])
    weir.step()
    assert len(list(weir.results("q"))) == 1
assert not [name for name in sys.modules if name.startswith("fishweir.papers")]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
