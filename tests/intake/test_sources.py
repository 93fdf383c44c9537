"""The source of a definition, and invalid definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fishweir.errors import FishweirError, SourceError
from fishweir.intake import StreamLog, check_source, open_source
from tests.intake.support import bodies, stream, taken

COLUMNS = (("i", "int"),)


def test_a_pushed_stream_has_no_source(tmp_path: Path) -> None:
    check_source(stream(), tmp_path)
    assert open_source(stream(), StreamLog(tmp_path / "log", stream()), tmp_path) is None


@pytest.mark.parametrize("path", ["a.xml", "folder", "no/*.xml", "no[1]"])
def test_valid_paths(tmp_path: Path, path: str) -> None:
    (tmp_path / "a.xml").write_text("<a/>")
    (tmp_path / "folder").mkdir()
    check_source(stream(path=path), tmp_path)


def test_paths_may_be_absolute(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a/>")
    assert bodies(taken(tmp_path, stream(path=str(tmp_path / "a.xml")))) == ["<a/>"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "no.xml"}, "stream S: .*no.xml does not exist"),
        ({"path": "ftp://a/b.xml"}, "stream S from 'ftp://a/b.xml': only files"),
        ({"path": "a", "format": "kafka"}, "only files"),
        ({"path": "a", "format": "yaml"}, "unknown format yaml"),
        ({"path": "a", "format": "csv"}, "format csv, but the stream declares no columns"),
        ({"path": "a", "format": "xml", "columns": COLUMNS}, "declares columns, which XML does not have"),
        ({"path": "a", "split": "/a/b", "columns": COLUMNS}, "split on /a/b is for XML"),
        ({"path": "a", "split": "/a/@b"}, "split on /a/@b must lead to elements"),
        ({"path": "a", "split": "a b"}, "'a b' is not a path"),
        ({"path": "a", "rows": "/a/b"}, "rows and key must be used together"),
        ({"path": "*.xml", "rows": "/a/b", "key": "c"}, "needs a single file, not a glob"),
        ({"path": ".", "rows": "/a/b", "key": "c"}, "is a folder"),
        ({"path": "a", "rows": "/a/b", "key": "c d"}, "'c d' is not a path"),
    ],
)
def test_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(FishweirError, match=message) as caught:
        check_source(stream(**options), tmp_path)
    assert isinstance(caught.value, SourceError) or "not a path" in message
