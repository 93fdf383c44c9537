"""Hypothesis' strategies, each created once: `from tests import strategies as st` instead of hypothesis' module.

Composite strategies create the strategies that they draw from in each call, hundreds of times per example. Hypothesis
validates and analyses each of them, which takes longer than all drawing. Here equal arguments give the same strategy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from hypothesis import settings, strategies

Create = Callable[..., Any]
_created: dict[Any, Any] = {}


TIMES = 10 if os.environ.get("FISHWEIR_HYPOTHESIS") == "fuzz" else 2 / 3


def examples(count: int, **others: Any) -> settings:
    """The number of examples of a test. `make fuzz` tries ten times as many, `make test` two thirds of them."""
    return settings(max_examples=max(1, round(TIMES * count)), **others)


def _once(create: Create) -> Create:
    @wraps(create)
    def created(*arguments: Any, **named: Any) -> Any:
        arguments = tuple(tuple(a) if isinstance(a, list) else a for a in arguments)
        try:
            key = (create, _key(arguments), *((name, _key(value)) for name, value in named.items()))
            return _created[key]
        except TypeError:  # an argument without a hash
            return create(*arguments, **named)
        except KeyError:
            return _created.setdefault(key, create(*arguments, **named))

    return created


def _key(value: Any) -> Any:
    """Distinguishes 1, 1.0 and True, which are equal."""
    return (tuple, *map(_key, value)) if isinstance(value, tuple) else (type(value), value)


def composite(draw_one: Create) -> Create:
    return _once(strategies.composite(draw_one))


booleans, integers, none, permutations, sampled_from = map(
    _once, (strategies.booleans, strategies.integers, strategies.none, strategies.permutations, strategies.sampled_from)
)
dictionaries, lists, sets, tuples = map(
    _once, (strategies.dictionaries, strategies.lists, strategies.sets, strategies.tuples)
)


def __getattr__(name: str) -> Any:
    return getattr(strategies, name)
