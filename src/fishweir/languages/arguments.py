"""Arguments of actions: the literals of a statement that say where results go, such as the address of a mail.

Most users have an address of their own, so queries that differ in it share a parse. Which literal is which argument is
found by trial: the statement is parsed again with another literal in its place. If exactly one argument changes, the
literal is that argument, whatever the language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fishweir.algebra.action_columns import ActionColumns, repeated
from fishweir.algebra.nodes import Action
from fishweir.errors import QueryError
from fishweir.languages.lexical import plain
from fishweir.languages.parsed import AnyParsed
from fishweir.languages.schedule import Clauses
from fishweir.languages.statement_text import Rejected

MARK = "a-distinct-text"
Arguments = tuple[tuple[int, int, int], ...]
"""The literals that are arguments, each with the places of the action and of the argument."""


def argument_by_trial(query: AnyParsed, parse: Callable[[], AnyParsed]) -> tuple[int, int] | None:
    """The places of the action and of the argument that became MARK, if nothing else changed."""
    try:
        tried = parse()
    except (Rejected, QueryError):
        return None
    for number, action in enumerate(query.clauses.actions):
        for place in range(len(action.arguments)):
            expected = _with_argument(query.clauses.actions, number, place, MARK)
            if tried.clauses.actions == expected != query.clauses.actions:
                return (number, place) if _is_same_otherwise(query, tried) else None
    return None


def _is_same_otherwise(query: AnyParsed, tried: AnyParsed) -> bool:
    return (
        tried.shape == query.shape
        and tried.constants == query.constants
        and _without_positions(replace(tried.clauses, actions=query.clauses.actions))
        == _without_positions(query.clauses)
    )


def _without_positions(clauses: Clauses) -> Clauses:
    """The clauses without their positions, which move with the length of a literal before them."""
    return replace(clauses, expire_at=0, preference_at=0, distinct_at=0)


def _with_argument(actions: tuple[Action, ...], number: int, place: int, text: str) -> tuple[Action, ...]:
    arguments = list(actions[number].arguments)
    arguments[place] = text
    changed = Action(actions[number].name, tuple(arguments))
    return (*actions[:number], changed, *actions[number + 1 :])


def with_arguments(actions: tuple[Action, ...], places: Arguments, literals: Sequence[str]) -> tuple[Action, ...]:
    """The actions with the arguments of a statement."""
    for at, number, place in places:
        actions = _with_argument(actions, number, place, plain(literals[at]))
    return actions


def all_with_arguments(
    actions: tuple[Action, ...], places: Arguments, columns: Sequence[Sequence[str] | str], count: int
) -> Sequence[ActionColumns]:
    """The actions of many statements, given those of the first, and the literals of each argument or the one that all
    share. Nothing if all have the same actions."""
    own = {
        (number, place): [plain(literal) for literal in column]
        for (_, number, place), column in zip(places, columns, strict=True)
        if not isinstance(column, str)
    }
    return [_with_columns(action, number, own, count) for number, action in enumerate(actions if own else ())]


def _with_columns(
    action: Action, number: int, own: Mapping[tuple[int, int], Sequence[str]], count: int
) -> ActionColumns:
    same = repeated(action, count)
    texts = [own.get((number, place)) or [text] * count for place, text in enumerate(action.arguments)]
    return replace(same, arguments=list(zip(*texts, strict=True))) if texts else same
