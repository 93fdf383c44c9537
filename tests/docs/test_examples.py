"""Every example of README.md and docs/ runs as it stands, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import fishweir
from fishweir import testing
from tests.docs.pages import Block, PageRun, blocks_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
KNOWN = {"sh", "python", "sql", "xscl", "niagaracq", "output", "text", "json", "xml", "csv"}


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(page: Path) -> list[Block]:
    return list(blocks_of(page.read_text(encoding="utf-8")))


WITH_EXAMPLES = [page for page in PAGES if any(block.runs for block in read(page))]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=named)
def test_examples_run_and_print_what_the_page_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs run their micro-batches without Spark, and one that names Spark gets the session of the tests. Commands
    start Spark as they do for a reader."""
    blocks = read(page)
    named_spark = any(block.runs and ".spark." in block.text for block in blocks)
    session = request.getfixturevalue("spark") if named_spark else None
    monkeypatch.setattr(fishweir, "open", lambda home: testing.Weir(Path(home), spark=session), raising=False)
    monkeypatch.chdir(tmp_path)
    PageRun(named(page), tmp_path).run(blocks)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_has_a_known_kind(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("\n```") == 2 * len(read(page)), "a fence is open, indented or has an unknown form"
    assert {block.kind for block in read(page)} <= KNOWN


def test_most_pages_have_examples() -> None:
    assert {"README.md", "docs/tutorial.md", "docs/languages/sql.md"} <= {named(page) for page in WITH_EXAMPLES}


PAGE = """
```sql title="watch.fw"
create stream S;
```

```sh
cat watch.fw
```

```output
create ... S;
```

<!-- not run: takes too long -->
```sh
exit 1
```

```python
print(2)
```

```output
{printed}
```
"""


def test_a_page_is_run_in_order_and_compared(tmp_path: Path) -> None:
    PageRun("page", tmp_path).run(list(blocks_of(PAGE.format(printed=2))))
    with pytest.raises(AssertionError, match="line 23: the page shows"):
        PageRun("page", tmp_path).run(list(blocks_of(PAGE.format(printed=3))))


def test_statements_that_are_refused_fail_a_page_that_does_not_show_the_message(tmp_path: Path) -> None:
    refused = "```sql\ncreate stream;\n```\n"
    with pytest.raises(AssertionError, match="expected the stream's name"):
        PageRun("page", tmp_path).run(list(blocks_of(refused)))
    shown = f"{refused}\n```output\nline 1, column ...: expected the stream's name...\n```\n"
    PageRun("page", tmp_path).run(list(blocks_of(shown)))
