"""Selection patterns dropped alone: if queries declare the value of a condition, it may be left unchecked."""

from __future__ import annotations

import pytest

from fishweir import Result, testing
from fishweir.shedding.decision import StreamShed
from tests.engine.test_shed_elements import lists
from tests.engine.test_shed_patterns import overloaded, transactions

PRICE = "list/transaction/order/price"
BODY = "for $a in stream('transactions')/list/transaction where $a/order/price > 100"
NAMED = "pref v(name) = 0.9, v(price) = 0.01"
OTHER = "create query other as for $a in stream('transactions')/list/transaction return $a/contact/tel;"


def shed(weir: testing.Weir, documents: list[str], *queries: str) -> dict[str, list[Result]]:
    """The results of one micro-batch under overload, by query. They are not delivered, so outputs cost nothing."""
    weir.execute(f"create stream transactions; {OTHER} {' '.join(queries)}")
    overloaded(weir)
    weir.publish("transactions", documents)
    weir.step()
    found: dict[str, list[Result]] = {}
    for result in weir.results():
        found.setdefault(result.query, []).append(result)
    return found


def number(result: Result) -> int:
    return int(str(result.output).removeprefix("<name>n").removesuffix("</name>"))


def test_a_condition_worth_little_is_not_checked_and_results_show_it(weir: testing.Weir) -> None:
    results = shed(weir, transactions(80), f"create query q as {BODY} return $a/name {NAMED};")["q"]
    relaxed = [one for one in results if one.left_out]
    assert all(one.left_out == (PRICE,) for one in relaxed)
    assert relaxed
    exact = {number(one) for one in results if not one.left_out}
    assert all(one % 2 for one in exact), "every other transaction costs more than 100"
    unchecked = {number(one) for one in relaxed}
    assert any(one % 2 == 0 for one in unchecked), "a superset"
    commit = weir.table.newest()
    (decided,) = (StreamShed.from_json(one) for one in commit.shedding.values())
    given_up = {i for i, level in enumerate(decided.levels) if level.relaxed}
    rows = weir.table.shed(commit).to_pylist()
    assert unchecked == {row["document"] for row in rows if row["level"] in given_up}, "all of these documents"
    assert len(results) == len(exact) + len(unchecked)
    assert all("left_out" in one.to_dict() for one in relaxed)


def test_other_conditions_are_checked(weir: testing.Weir) -> None:
    text = f"{BODY} and $a/contact/tel < 40 return $a/name pref v(name) = 0.9, v(tel) = 0.9, v(price) = 0.01"
    results = shed(weir, transactions(80), f"create query q as {text};")["q"]
    assert any(one.left_out for one in results)
    assert {number(one) for one in results} <= set(range(1, 40))
    assert any(number(one) % 2 == 0 for one in results)


def test_elements_of_a_document(weir: testing.Weir) -> None:
    results = shed(weir, lists(30), f"create query q as {BODY} return $a/name {NAMED};")["q"]
    unchecked = {number(one) for one in results if one.left_out}
    exact = {number(one) for one in results if not one.left_out}
    assert all(one % 2 for one in exact)
    assert any(one % 2 == 0 for one in unchecked)
    by_document = {one.documents[0] for one in results if one.left_out}
    assert len(by_document) < len(unchecked), "several elements of a document"
    assert len(results) == len(exact) + len(unchecked)


@pytest.mark.parametrize(
    "text",
    [
        f"create query q as {BODY} return $a/name pref v(name) = 0.9;",
        f"create query q as {BODY} return $a/name {NAMED}; create query firm as {BODY} return $a/id;",
        f"create query q as {BODY} return $a/name, $a/order/price {NAMED};",
    ],
    ids=["not named", "another query checks it", "returned as well"],
)
def test_other_conditions_are_checked_or_the_query_is_suspended(weir: testing.Weir, text: str) -> None:
    results = shed(weir, transactions(80), text).get("q", [])
    names = [str(one.output).partition("</name>")[0].removeprefix("<name>n") for one in results]
    assert all(int(one) % 2 for one in names)
    assert not any(PRICE in one.left_out for one in results if "price" not in text.partition("return")[2])
