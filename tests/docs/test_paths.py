"""What the documents name exists: files and folders of the package, links between the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_examples import PAGES, ROOT, named

PACKAGE = ROOT / "src" / "fishweir"
PLACES = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*") if "__pycache__" not in path.parts}
IN_A_HOME = {"checkpoint/", "results/", "delivery/", "state/"}
MAPS = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]


def exists(name: str) -> bool:
    """Whether a name is a path, or the end of a path, in the package, or a path from the root of the repository."""
    place = name.rstrip("/")
    return (ROOT / name).exists() or any(f"/{known}".endswith(f"/{place}") for known in PLACES)


@pytest.mark.parametrize("page", MAPS, ids=named)
def test_every_file_and_folder_exists(page: Path) -> None:
    found = re.findall(r"`([\w/]+(?:\.py|\.lark|/))`", page.read_text(encoding="utf-8"))
    assert len(found) > 10
    assert [name for name in found if name not in IN_A_HOME and not exists(name)] == []


@pytest.mark.parametrize("page", [*PAGES, MAPS[0]], ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Checks the links in the repository; `make docs` checks those of the site."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", prose)
    assert [link for link in links if not (page.parent / link).exists()] == []
