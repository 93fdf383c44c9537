"""Feeds and selections as a few readable lines, for the fixture files."""

from __future__ import annotations

from collections.abc import Callable

from fishweir.algebra.feeds import (
    CreateFeed,
    DropFeed,
    FeedName,
    FeedQuery,
    FeedUnion,
    RegisterFeed,
    Selection,
    Subscribe,
    Unsubscribe,
)
from fishweir.algebra.formula import And, Atom, Formula, Or, RelativePath
from fishweir.algebra.nodes import Constant, Slot

FeedStatement = CreateFeed | RegisterFeed | Subscribe | Unsubscribe | DropFeed


def statement_text(statement: FeedStatement) -> str:
    match statement:
        case CreateFeed(name, query, constants):
            return "\n".join([f"{'new ' if statement.replace else ''}feed {name}", *query_lines(query, constants)])
        case RegisterFeed(name, url, virtual, stylesheet):
            return f"register {name}: url {url}, virtual {virtual}, stylesheet {stylesheet}"
        case Subscribe(feed, action, stylesheet, schedule):
            return f"subscribe {feed}: {action}, stylesheet {stylesheet}, every {schedule.every}"
        case Unsubscribe(feed, action):
            return f"unsubscribe {feed}: {action}"
        case DropFeed(name):
            return f"drop {name}"


def query_lines(query: FeedQuery, constants: tuple[Constant, ...]) -> list[str]:
    lines = [f"from {feed_text(query.main)}"]
    for join in query.joins:
        window = f"{slot_text(join.window.end)} {'items' if join.window.rows else 's'}"
        lines.append(f"join {window} of {feed_text(join.secondary)} with ${join.variable}")
        parts = join.condition.parts if isinstance(join.condition, And) else (join.condition,)
        lines += [f"  on {formula_text(part, of_join=True)}" for part in parts]
    lines += [f"if ${c.variable} {formula_text(c.formula)}" for c in query.where]
    return lines + [f"constant {c!r}" for c in constants]


def selection_text(query: Selection, constants: tuple[Constant, ...]) -> str:
    lines = [f"read {query.filters[0].source}", f"if {formula_text(query.filters[0].formula)}"]
    lines += [f"out {name}: {path_text(path)}" for name, path in query.output.columns]
    return "\n".join(lines + [f"constant {c!r}" for c in constants])


def feed_text(feed: FeedName | FeedUnion) -> str:
    variable = "" if feed.variable is None else f" as ${feed.variable}"
    if isinstance(feed, FeedName):
        return feed.name + variable
    return f"({' | '.join(feed_text(member) for member in feed.members)}){variable}"


def formula_text(formula: Formula, of_join: bool = False) -> str:
    match formula:
        case Atom():
            return _atom(formula, _side_text if of_join else path_text)
        case And(parts):
            return f"({' and '.join(formula_text(part, of_join) for part in parts)})" if parts else "true"
        case Or(parts):
            return f"({' or '.join(formula_text(part, of_join) for part in parts)})" if parts else "false"
        case _:
            return f"not {formula_text(formula.part, of_join)}"


def _side_text(path: RelativePath) -> str:
    return f"{'window ' if path[0].name == '1' else ''}{path_text(path[1:])}"


def _atom(atom: Atom, path_text: Callable[[RelativePath], str]) -> str:
    left = path_text(atom.path) if atom.part == "value" else f"{atom.part}({path_text(atom.path)})"
    if atom.right is None:
        return f"{atom.op} {left}"
    threshold = "" if atom.threshold is None else f"({slot_text(atom.threshold)})"
    right = slot_text(atom.right) if isinstance(atom.right, Slot) else path_text(atom.right)
    return f"{left} {atom.op}{threshold} {right}"


def slot_text(slot: Slot) -> str:
    return f"{slot.type}[{slot.index}]"


def path_text(path: RelativePath) -> str:
    return "/".join(map(str, path)) or "item"
