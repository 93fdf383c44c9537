"""Forms: what statements that differ only in names and constants have in common, as a pattern that matches them.

In: a statement whose shape is known. Out: its form. The skeleton of a statement (skeleton.py) becomes a pattern for
statements with the same skeleton and the same structural literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fishweir.algebra.action_columns import ActionColumns
from fishweir.algebra.feeds import Subscribe
from fishweir.algebra.nodes import Action, Constant
from fishweir.algebra.path_queries import Paths
from fishweir.languages.arguments import Arguments, all_with_arguments
from fishweir.languages.lexical import NAME, OPENING_QUOTES, QUOTED, unquote
from fishweir.languages.skeleton import KINDS, NO_KEYWORD, Reader, SkeletonCache, SplitStatement, read_all
from fishweir.languages.subscriptions import SHARED

_MARKS = re.compile(r"[;\"'“”#]|--")
"""What might begin a quotation or a comment, or end a statement, depending on the literal before it."""

Columns = Sequence[Sequence[str]]
"""The groups of a pattern, each with the texts of all statements. The first group is the whole statement."""


class Form(NamedTuple):
    """What the statements of a series have in common."""

    pattern: str
    """Matches one statement; its groups are the name, if any, and what the constants are read from."""
    name: int | None
    """The group of the name; the statement itself is group 0."""
    constants: Callable[[Columns], Sequence[tuple[Constant, ...]]]
    """Reads the constants of all statements, up to the first with an invalid constant."""
    is_feed: bool = False
    arguments: Arguments = ()
    """The groups that are arguments of actions."""

    def actions(self, actions: tuple[Action, ...], columns: Columns) -> Sequence[ActionColumns]:
        """The actions of all statements, if they may differ."""
        own = [columns[group] for group, _, _ in self.arguments]
        return all_with_arguments(actions, self.arguments, own, len(columns[0]))


def form_of(like: object, text: str, cache: SkeletonCache) -> Form | None:
    """The form of a subscription, or of a query with a shape; None if statements of this form cannot be read
    together."""
    if isinstance(like, Paths):
        from fishweir.languages.xscl.plain import path_form

        return path_form(text)
    found = SHARED.slots(text) if isinstance(like, Subscribe) else cache.slots(text)
    return None if found is None else _literal_form(*found)


def _literal_form(
    split: SplitStatement, slots: Sequence[tuple[int, Reader]], structural: Sequence[int], arguments: Arguments
) -> Form | None:
    """The form of statements that have this skeleton and these structural literals."""
    kind = split.skeleton[0]
    found = literals_pattern(split, structural, 1 + (kind in _NAMED))
    if found is None:
        return None
    pattern, groups = found
    fixed = split.literals or ("",)

    def constants(columns: Columns) -> Sequence[tuple[Constant, ...]]:
        count = len(columns[0])
        read = [
            read_all(reader, columns[groups[at]]) if at in groups else [reader(fixed[at])] * count
            for at, reader in slots
        ]
        valid = min((column.index(None) for column in read if None in column), default=count)
        return list(zip(*read, strict=True))[:valid] if read else [()] * count

    name = len(groups) + 1 if kind == "publish" else 1 if kind in _NAMED else None
    own = tuple((groups[at], number, place) for at, number, place in arguments)
    published = f"({NAME})" if kind == "publish" else ""
    return Form(f"{_HEADS[str(kind)]}{pattern}{published}", name, constants, kind == "feed", own)


def literals_pattern(
    split: SplitStatement, structural: Sequence[int], group: int
) -> tuple[str, Mapping[int, int]] | None:
    """A pattern for texts that have this skeleton and these structural literals, and the groups of the other literals,
    counted from `group`. None if where a literal begins and ends may depend on others."""
    _, kinds, *between = split.skeleton
    if any(_MARKS.search(str(text)) for text in between) or not all(between[1:-1]):
        return None
    patterns, groups = [re.escape(str(between[0]))], dict[int, int]()
    for at, literal in enumerate(split.literals):
        if at in structural:
            patterns.append(re.escape(literal))
        else:
            groups[at] = group + len(groups)
            patterns.append(f"({KINDS[kinds[at]]})")  # type: ignore[index]
        patterns.append(re.escape(str(between[at + 1])))
    return "".join(patterns), groups


_NAMED = ("create", "query", "feed")
_HEADS = {"": "", "publish": ""} | {
    kind: rf"(?i:{words}\s++{NO_KEYWORD})({NAME}|{QUOTED})"
    for kind, words in zip(_NAMED, ("create", r"create\s++query", r"create\s++feed"), strict=True)
}


def names_of(form: Form, columns: Columns) -> Sequence[str | None]:
    """The names of all statements, up to the first that is blank."""
    if form.name is None:
        return [None] * len(columns[0])
    names = [unquote(name) if name[0] in OPENING_QUOTES else name for name in columns[form.name]]
    stripped = [name.strip() for name in names]
    valid = stripped.index("") if "" in stripped else len(names)
    return (stripped if form.is_feed else names)[:valid]
