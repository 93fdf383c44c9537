"""XML files: as they are or split, in order, once each, whatever is wrong with them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fishweir.intake.sources.files import FileSource
from tests.intake.support import bodies, entries, opened, problems, stream, taken

SPLIT = stream(path="in", split="/Quotes/Quote")
BOMB = (
    '<!DOCTYPE r [<!ENTITY a "' + "a" * 100 + '">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(8))
    + "]><Quotes><Quote>1</Quote><Quote>&i;</Quote></Quotes>"
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def put(path: Path, content: str | bytes, mtime: int = 1000) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (mtime, mtime))
    return path


def quotes(start: int, stop: int) -> str:
    return "".join(f"<Quote>{n}</Quote>" for n in range(start, stop))


def test_whole_files_in_order_of_time_and_name(tmp_path: Path, folder: Path) -> None:
    for name, mtime in (("b.xml", 5), ("a.xml", 5), ("z.xml", 1), (".h.xml", 1), ("_t", 1), ("x.tmp", 1)):
        put(folder / name, f"<{name[0]}/>", mtime)
    (folder / "sub").mkdir()
    put(folder / "c.xml", b"\xff not xml", 9)
    found = taken(tmp_path, stream(path="in"))
    assert [entry.body for entry in found] == [b"<z/>", b"<a/>", b"<b/>", b"\xff not xml"]
    assert [entry.id for entry in found] == ["S-1", "S-2", "S-3", "S-4"]
    assert problems(found) == []


@pytest.mark.parametrize("path", ["in", "in/*.xml", "in/**/*.xml"])
def test_new_files_are_picked_up_and_old_ones_remembered(tmp_path: Path, folder: Path, path: str) -> None:
    definition = stream(path=path)
    put(folder / "a.xml", "<a/>")
    log, source = opened(tmp_path, definition)
    assert list(source.poll(1.0)) == [1]
    assert list(source.poll(2.0)) == []
    put(folder / "b.xml", "<b/>")
    assert list(source.poll(3.0)) == [1]
    log, source = opened(tmp_path, definition)
    assert list(source.poll(4.0)) == []
    assert [(entry.body, entry.arrival) for entry in entries(log)] == [(b"<a/>", 1.0), (b"<b/>", 3.0)]


def test_small_files_share_a_segment(tmp_path: Path, folder: Path) -> None:
    for n in range(2500):
        put(folder / f"{n:04d}.xml", f"<a>{n}</a>")
    log, source = opened(tmp_path, stream(path="in"))
    assert list(source.poll(1.0)) == [1000, 1000, 500]
    assert bodies(entries(log)) == [f"<a>{n}</a>" for n in range(2500)]


def test_each_version_of_a_file_is_a_document(tmp_path: Path, folder: Path) -> None:
    """Also after a restart; a file that is only touched has no new version."""
    for round, (text, new) in enumerate([("<a/>", 1), ("<b/>", 1), ("<b/>", 0), ("<a/>", 1), ("<a", 1), ("<c/>", 1)]):
        put(folder / "a.xml", text, 1000 + round)
        log, source = opened(tmp_path, stream(path="in"))
        assert [sum(source.poll(float(round))), sum(source.poll(round + 0.5))] == [new, 0]
    assert bodies(entries(log)) == ["<a/>", "<b/>", "<a/>", "<a", "<c/>"]


@pytest.mark.parametrize("split", ["/Quotes/Quote", "Quote", "//Quote", "Quotes/Quote"])
def test_split(tmp_path: Path, folder: Path, split: str) -> None:
    put(
        folder / "a.xml",
        "<Quotes>x<Quote a='1'>1<Quote>in</Quote></Quote>tail <!-- c --><Other/><Quote>2</Quote></Quotes>",
    )
    found = taken(tmp_path, stream(path="in", split=split))
    assert bodies(found) == ['<Quote a="1">1<Quote>in</Quote></Quote>', "<Quote>2</Quote>"]
    assert {entry.context for entry in found} == {"Quotes"}


def test_split_with_namespaces_entities_and_other_depths(tmp_path: Path, folder: Path) -> None:
    put(
        folder / "a.xml",
        "<!DOCTYPE r [<!ENTITY e 'ent'>]><r xmlns='u' xmlns:p='v'><g><p:Quote p:a='1'>&e;</p:Quote></g>"
        "<Quote><!--c-->é</Quote></r>",
    )
    found = taken(tmp_path, stream(path="in", split="//Quote"))
    assert bodies(found) == [
        '<p:Quote xmlns:p="v" xmlns="u" p:a="1">ent</p:Quote>',
        '<Quote xmlns="u" xmlns:p="v"><!--c-->é</Quote>',
    ]
    assert [entry.context for entry in found] == ["r/g", "r"]


def test_split_at_the_document_element(tmp_path: Path, folder: Path) -> None:
    put(folder / "a.xml", "<Quote><Quote/></Quote>")
    (found,) = taken(tmp_path, stream(path="in", split="Quote"))
    assert (found.body, found.context) == (b"<Quote><Quote/></Quote>", "")


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "utf-8-sig"])
def test_split_of_other_encodings(tmp_path: Path, folder: Path, encoding: str) -> None:
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    text = f"<?xml version='1.0' encoding='{declared}'?><Quotes><Quote>é</Quote></Quotes>"
    put(folder / "a.xml", text.encode(encoding))
    assert bodies(taken(tmp_path, SPLIT)) == ["<Quote>é</Quote>"]


EXTERNAL = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><Quotes><Quote>&x;</Quote></Quotes>'

BAD: list[tuple[str | bytes, int, str]] = [
    ("<Quotes><Quote>1</Quote>\n<Quote>2</Quote>\n<Quote>3</Quotes>", 2, "line 3"),
    ("<Quotes><Quote>1</Quote>\n<Quote>", 1, "line 2"),
    ("", 0, "the file is empty"),
    ("   ", 0, "not well-formed XML"),
    ("no xml", 0, "not well-formed XML"),
    (b"<?xml version='1.0' encoding='klingon'?><Quotes><Quote/></Quotes>", 0, "encoding"),
    (b"<Quotes><Quote>1</Quote><Quote>\xe9</Quote></Quotes>", 1, "encoding"),
    (BOMB, 1, "entity amplification"),
    (EXTERNAL, 0, "external entities"),
    ("<Quotes><Quote>1</Quote><Quote>" + "x" * 30_000_000 + "</Quote></Quotes>", 1, "Text node too long"),
    ("<Quotes>" + "<a>" * 3000 + "</a>" * 3000 + "</Quotes>", 0, "depth"),
    ("<Quotes><Quote>1</Quote></Quotes><Quotes/>", 1, "Extra content"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "good", "reason"), BAD, ids=[reason for _, _, reason in BAD])
def test_bad_files_are_one_problem_after_their_good_part(
    tmp_path: Path,
    folder: Path,
    content: str | bytes,
    good: int,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = put(folder / "bad.xml", content, 1)
    put(folder / "good.xml", "<Quotes><Quote>last</Quote></Quotes>", 2)
    found = taken(tmp_path, SPLIT)
    assert bodies(found) == [f"<Quote>{n + 1}</Quote>" for n in range(good)] + ["<Quote>last</Quote>"]
    (problem,) = problems(found)
    assert str(bad) in problem
    assert reason in problem
    assert found[good].body == bad.read_bytes()
    assert f"stream S: {bad}" in caplog.text
    assert taken(tmp_path, SPLIT) == found


def test_a_text_node_of_200_megabytes(tmp_path: Path, folder: Path) -> None:
    with (folder / "bad.xml").open("wb") as file:
        file.write(b"<Quotes><Quote>1</Quote><Quote>")
        for _ in range(200):
            file.write(b"x" * 1_000_000)
        file.write(b"</Quote></Quotes>")
    log, source = opened(tmp_path, SPLIT)
    list(source.poll(1.0))
    assert log.head() == 2
    (_, batch), *_ = log.read(1, 2)
    assert "Text node too long" in batch.column("problem")[0].as_py()


def test_a_file_without_matches_is_remembered(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "a.xml", "<Other><Quote/></Other>")
    log, source = opened(tmp_path, SPLIT)
    assert list(source.poll(1.0)) == []
    assert isinstance(source, FileSource)
    assert (log.head(), source.empty_files) == (0, 1)
    assert "stream S: in/a.xml has no element at /Quotes/Quote" in caplog.text
    _, source = opened(tmp_path, SPLIT)
    monkeypatch.setattr(FileSource, "_read", None)
    assert list(source.poll(2.0)) == []
    assert source.trouble is None


@pytest.mark.parametrize("restart", [True, False])
def test_interrupted_in_the_middle_of_a_file(tmp_path: Path, folder: Path, restart: bool) -> None:
    put(folder / "a.xml", f"<Quotes>{quotes(0, 3500)}", 1)
    put(folder / "b.xml", f"<Quotes>{quotes(3500, 3600)}</Quotes>", 2)
    log, source = opened(tmp_path, SPLIT)
    for _ in range(10):
        polling = source.poll(1.0)
        next(polling, None)
        del polling
        if restart:
            log, source = opened(tmp_path, SPLIT)
    found = entries(log)
    assert bodies(found) == [f"<Quote>{n}</Quote>" for n in range(3600)]
    assert [number for number, entry in enumerate(found) if entry.problem] == [3500]


def test_memory_is_bounded_without_matches(tmp_path: Path, folder: Path) -> None:
    from fishweir.algebra.simple_paths import parse_path
    from fishweir.intake.sources.split import _OpenTree, split_elements

    put(folder / "a.xml", "<r><g>" + "<x><y/>t</x>" * 100_000 + "</g></r>")
    sizes: list[int] = []
    original: Callable[[_OpenTree, int], None] = _OpenTree.drop_processed

    def measured(tree: _OpenTree, size: int) -> None:
        original(tree, size)
        assert tree.root is not None
        sizes.append(sum(1 for _ in tree.root.iter()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_OpenTree, "drop_processed", measured)
        assert list(split_elements(folder / "a.xml", parse_path("Quote"))) == []
    assert len(sizes) > 3
    assert max(sizes) < 10


def test_problems_are_reported_and_cleared(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _, source = opened(tmp_path, stream(path="in"))
    with caplog.at_level(logging.WARNING):
        assert [*source.poll(1.0), *source.poll(2.0)] == []
    assert source.trouble == f"stream S: {tmp_path / 'in'}: No such file or directory"
    assert caplog.text.count("No such file") == 1
    (tmp_path / "in").mkdir()
    put(tmp_path / "in" / "a.xml", "<a/>")
    assert list(source.poll(3.0)) == [1]
    assert source.trouble is None


def test_a_file_that_cannot_be_opened_is_retried(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder / "a.xml", "<a/>", 1)
    put(folder / "b.xml", "<b/>", 2)
    log, source = opened(tmp_path, stream(path="in"))
    original = Path.read_bytes

    def denied(path: Path) -> bytes:
        if path.name == "a.xml":
            raise PermissionError(13, "Permission denied", str(path))
        return original(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", denied)
        assert list(source.poll(1.0)) == [1]
    assert source.trouble == f"stream S: {folder / 'a.xml'}: Permission denied"
    assert list(source.poll(2.0)) == [1]
    assert bodies(entries(log)) == ["<b/>", "<a/>"]
    assert source.trouble is None


def test_a_full_disk_neither_loses_nor_repeats_documents(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "a.xml", f"<Quotes>{quotes(0, 2500)}</Quotes>")
    log, source = opened(tmp_path, SPLIT)
    polling = source.poll(1.0)
    next(polling)
    with monkeypatch.context() as patch:
        patch.setattr("os.fdatasync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        assert list(polling) == []
        assert "No space left" in str(source.trouble)
        assert list(source.poll(1.5)) == []
    list(source.poll(2.0))
    assert bodies(entries(log)) == [f"<Quote>{n}</Quote>" for n in range(2500)]
