"""The statements of part `registration`: queries of one shape in each language, distinct paths, and subscriptions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

SETUP = """
create stream S;
create stream R (x int, y int, w string);
create stream Q (x int, y int, w string);
create stream news
"""
NAMES = tuple(f"{a}{b}" for a in "abcdefgh" for b in ("tem", "ody", "head", "para", "sec", "ref"))
DEPTH, WILD, DEEP, ATTRIBUTE, PREDICATE = 6, 0.2, 0.2, 0.2, 0.35
"""Maximum number of steps; probabilities that a step is `*`, that it uses `//`, that a path ends in an attribute, and
that a step has a predicate."""

LANGUAGES: tuple[tuple[str, str, Callable[[int], dict[str, Any]]], ...] = (
    (
        "SQL, ranges",
        "create query $name as select x from R where x >= $a and x < $b and y > $c",
        lambda i: {"a": i, "b": i + 10, "c": i % 97},
    ),
    (
        "SQL, two words",
        "create query $name as select w from R where w contains $a and w contains $b",
        lambda i: {"a": f"w{i % 977}", "b": f"v{i % 1009}"},
    ),
    (
        "SQL, window joins",
        "create query $name as select R.x, Q.y from R [range 60], Q [range 60] where R.x = Q.x and R.y > $a",
        lambda i: {"a": i},
    ),
    ("XSCL, a path", "create query $name as S/a/b[c = $a]/d", lambda i: {"a": f"c{i}"}),
    (
        "XSCL, joins",
        "create query $name as S/a[k->x] followed by{x = y, $t} S/b[k->y]",
        lambda i: {"t": 60 + i % 1000},
    ),
    (
        "XSCL, NOT FOLLOWED BY",
        "create query $name as S/a[k->x][l = '$name'] not followed by{x = y, $t} S/b[k->y]",
        lambda i: {"t": 60 + i % 1000},
    ),
    ("NiagaraCQ", "create $name where <a><b>$v</></> in 'S', $v = $a construct $v", lambda i: {"a": f"c{i}"}),
    ("XQuery", "create query $name as for $d in stream('S')/a where $d/b = $a return $d", lambda i: {"a": f"c{i}"}),
    (
        "RoSeS, queries",
        "create query $name as from news as $n where $n[title contains $a]",
        lambda i: {"a": f"w{i}"},
    ),
    ("RoSeS, feeds", "create feed $name from news as $n where $n[title contains $a]", lambda i: {"a": f"w{i}"}),
)


OTHERS: tuple[tuple[str, str, Callable[[int], dict[str, Any]]], ...] = (
    (
        "SQL, an address each",
        "create query $name as select x from R where x > $a do mail '$name@example.org'",
        lambda i: {"a": i},
    ),
    (
        "SQL, a web address each",
        "create query $name as select x from R where x > $a do http 'https://example.org/users/$name'",
        lambda i: {"a": i},
    ),
    (
        "SQL, two addresses each, hourly",
        "create query $name as select x from R where x > $a do mail '$name@example.org' do mail '$name@example.com' "
        "every 1 hour",
        lambda i: {"a": i},
    ),
    (
        "XSCL, an address each",
        "create query $name as S/a/b[c = $a]/d do mail '$name@example.org'",
        lambda i: {"a": f"c{i}"},
    ),
    ("SQL, published", "select x from R where x > $a publish $name", lambda i: {"a": i}),
)
"""Queries that store more than a row each: where their results go, or a stream of their own that others may read."""
FEED = "create feed items from news as $n where $n[title contains 'weir']"
SUBSCRIPTIONS = (
    ("subscriptions", "subscribe to items output mail '$name@example.org'"),
    ("subscriptions, hourly", "subscribe to items output mail '$name@example.org' every 1 hour"),
)
PATHS = (
    ("distinct paths", "create query $name as S$path"),
    ("distinct paths, an address each", "create query $name as S$path do mail '$name@example.org'"),
    ("distinct paths with predicates", "create query $name as S$path"),
)
ALTERNATING = ("SQL, ranges", "XSCL, a path", "SQL, two words", "XQuery")
"""The forms of a script whose statements alternate."""


def distinct_paths(count: int, predicates: bool, seed: int = 1) -> list[str]:
    """Distinct paths with YFilter's parameters."""
    rng, found = random.Random(seed), dict[str, None]()
    while len(found) < count:
        path = ""
        for _ in range(rng.randint(2, DEPTH)):
            path += f"{'//' if rng.random() < DEEP else '/'}{'*' if rng.random() < WILD else rng.choice(NAMES)}"
            if predicates and rng.random() < PREDICATE:
                path += _predicate(rng)
        found[f"{path}/@{rng.choice(NAMES)}" if rng.random() < ATTRIBUTE else path] = None
    return list(found)


def _predicate(rng: random.Random) -> str:
    about = f"{rng.choice(('@', '', ''))}{rng.choice(NAMES)}"
    if rng.random() < 0.6:
        return f'[{about} = "{rng.choice(NAMES)}{rng.randint(0, 99)}"]'
    return f"[{about} {rng.choice(('<', '>='))} {rng.randint(0, 999)}]"
