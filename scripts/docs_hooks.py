"""MkDocs hook: adds the documents in the repository's root to the site, and adapts the links between pages.

In the repository a page links to `../ARCHITECTURE.md`, and ARCHITECTURE.md to `docs/glossary.md`; on the site both are
pages of one folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGES = {"ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    root = Path(config.config_file_path).parent
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(root / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(text: str, **_: Any) -> str:
    for name, page in PAGES.items():
        text = text.replace(f"](../../{name}", f"](../{page}")  # from a page in a folder of docs/
        text = text.replace(f"](../{name}", f"]({page}").replace(f"]({name}", f"]({page}")
    return text.replace("](docs/", "](")
