"""Which patterns are left out first, across all queries of a stream."""

from __future__ import annotations

import pytest

from fishweir.algebra.nodes import CreateQuery
from fishweir.languages.script import parse_script
from fishweir.shedding.decision import Level, levels_for
from fishweir.shedding.overload import Budget
from fishweir.shedding.suspension import Part, PreferenceGroup, Saved, Variant, chain, parts_of


def group(text: str, subscribers: int = 1) -> PreferenceGroup:
    (statement,) = parse_script(text)
    assert isinstance(statement, CreateQuery)
    return PreferenceGroup(statement.preference, subscribers, statement.shape, True)


TEL = "for $a in stream('S')/t where $a/price > 1 return $a/name, $a/tel pref v(name) = 0.8, v(tel) = 0.2, v(price) = 0"
ADDR = "for $a in stream('S')/t where $a/k = 'x' return $a/tel, $a/addr pref v(tel) = 0.9, v(addr) = 0.1, v(k) = 0"
PLAIN = "for $a in stream('S')/t where $a/price > 1 return $a/addr"


def evenly(part: Part) -> Saved:
    return (0.2, 0.0) if part.is_condition else (0.0, 0.2)


def returns(*groups: PreferenceGroup, allowed: bool = False) -> list[tuple[str, ...]]:
    found = parts_of(groups, allowed, conditions=False)
    return [variant.returns for variant in chain(found, (1.0, 1.0), evenly)]


def test_patterns_that_lose_least_are_left_out_first() -> None:
    assert returns(group(TEL)) == [(), ("t.tel",)], "an output keeps its last pattern"


def test_the_sum_over_all_queries_counts_by_subscribers() -> None:
    assert returns(group(TEL), group(ADDR)) == [(), ("t.addr",), ("t.addr", "t.name")]
    assert returns(group(TEL), group(ADDR, 100)) == [(), ("t.name",), ("t.name", "t.addr")]


def test_utilities_of_a_chain() -> None:
    found = parts_of([group(TEL, 3), group(ADDR)], False, conditions=False)
    utilities = [variant.utility for variant in chain(found, (1.0, 1.0), evenly)]
    assert utilities == pytest.approx([1, 1 - 0.1 / 4, 1 - (0.1 + 3 * 0.8) / 4])


def test_queries_without_preference_lose_nothing_unless_allowed() -> None:
    assert returns(group(PLAIN)) == [()]
    assert returns(group(PLAIN.replace("$a/addr", "$a/addr, $a/id")), allowed=True)[1:] == [("t.addr",)]
    found = parts_of([group(PLAIN), group(ADDR)], False, conditions=False)
    addr = next(part for part in found.parts if part.key == "t.addr")
    assert [place for place, _ in addr.losers] == [1]


def test_conditions_are_left_out_if_all_queries_that_need_them_allow_it() -> None:
    found = parts_of([group(TEL), group(ADDR)], False)
    assert {part.key for part in found.parts if part.is_condition} == {"t.price", "t.k"}
    found = parts_of([group(TEL), group(ADDR), group(PLAIN)], False)
    assert {part.key for part in found.parts if part.is_condition} == {"t.k"}
    absent = group("S/t->t[price][not(k)] pref v(t) = 0.3")
    found = parts_of([group(TEL), group(ADDR), absent], False)
    assert not {part.key for part in found.parts if part.is_condition}, "without k it would be true of all"


def test_suspending_a_condition_suspends_what_no_other_query_needs() -> None:
    text = "for $a in stream('S')/t where $a/k/x = 'x' return $a/tel pref v(tel) = 0.9"
    found = parts_of([group(TEL, 10), group(text)], False)
    chosen = [part for part in found.parts if part.key == "t.k.x"]
    last = chain(found, (1.0, 1.0), lambda part: (0.3, 0.0) if part in chosen else (0.0, 0.0))[-1]
    assert set(last.conditions) == {"t.k", "t.k.x"}
    assert last.utility == pytest.approx(1 - 1 / 11)
    assert last.matching == pytest.approx(0.7)


def test_patterns_that_save_nothing_stay() -> None:
    assert chain(parts_of([group(TEL)], False), (1.0, 0.0), evenly) == (Variant(),)


BUDGET = Budget(1.0, 1e-3, 1e-3)
CHEAP = Variant(0.9, 1.0, 0.5, ("x",))


def test_patterns_before_documents() -> None:
    assert levels_for((Variant(), CHEAP), 600, 1.0, BUDGET, True) == (Level(1.0, ("x",)),)
    levels = levels_for((Variant(), CHEAP), 1_000, 1.0, BUDGET, True)
    assert [level.returns for level in levels] == [("x",)]
    assert levels[0].share == pytest.approx(0.666)


def test_if_documents_must_stay_the_rest_gets_the_cheapest_variant() -> None:
    assert levels_for((Variant(), CHEAP), 1_000, 1.0, BUDGET, False) == (Level(1.0, ("x",)),)


def test_some_outputs_are_always_constructed_to_measure_their_cost() -> None:
    none = Variant(0.0, 1.0, 0.0, (), ("k",))
    assert levels_for((Variant(), none), 1_000, 0.0, BUDGET, False) == (Level(0.01), Level(0.99, (), ("k",)))
