"""Only languages/ knows the language of a query: differences between languages are properties of its nodes."""

from __future__ import annotations

import ast

import pytest

from fishweir.languages.script import LANGUAGES
from tests.test_imports import FILES, faults, unit_of

NAMES = {language.name.lower() for language in LANGUAGES}
NOT_QUERIES = {"languages", "cli", "papers"}
"""The commands and the experiments use these names for other things: papers, a syntax to highlight."""


def language_tags(source: str) -> list[str]:
    """Names of languages as values, and attributes, fields and arguments that hold one."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)) if text.lower() in NAMES:
                found.append(f"{node.lineno}: {text!r}")
            case ast.Attribute(attr="language") | ast.keyword(arg="language") | ast.arg(arg="language"):
                found.append(f"{node.lineno}: language")
            case ast.AnnAssign(target=ast.Name(id="language")):
                found.append(f"{node.lineno}: language")
    return found


def test_no_language_tags() -> None:
    files = [file for file in FILES if unit_of(file) not in NOT_QUERIES]
    assert faults(files, lambda file: language_tags(file.read_text(encoding="utf-8"))) == {}


@pytest.mark.parametrize(
    "source",
    ["x == 'sql'", "shape.language", "Shape(language=x)", "def f(language): pass", "class A:\n    language: str = ''"],
)
def test_finds_tags_of_every_form(source: str) -> None:
    assert language_tags(source)
