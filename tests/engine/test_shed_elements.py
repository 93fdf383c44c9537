"""Documents that are lists of many elements: under overload the job switches patterns from element to element."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from fishweir import Result, testing
from fishweir.engine.status import EngineStatus
from fishweir.pipeline.commits import Commit
from fishweir.shedding.overload import Overload
from tests.engine.test_shed_patterns import Q1, overloaded, taken, transactions

assert taken  # a fixture

PREFERRED = f"create query Q1 as {Q1} pref v(name) = 0.5, v(tel) = 0.3, v(price) = 0.19, v(addr) = 0.01 do keep;"
EACH = 40


def lists(count: int) -> list[str]:
    """Documents of 40 transactions each. Q1 selects every other transaction."""
    ones = [one.removeprefix("<list>").removesuffix("</list>") for one in transactions(count * EACH)]
    return [f"<list>{''.join(ones[i : i + EACH])}</list>" for i in range(0, len(ones), EACH)]


def by_document(results: list[Result]) -> dict[str, list[Result]]:
    found: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        found[result.documents[0]].append(result)
    return found


def test_elements_of_one_document_lose_different_patterns(weir: testing.Weir, taken: list[Result]) -> None:
    weir.execute(f"create stream transactions; {PREFERRED} create query plain as {Q1}")
    overloaded(weir)
    weir.publish("transactions", lists(30))
    weir.step()
    results, plain = list(weir.results("Q1")), list(weir.results("plain"))
    assert len(results) == len(plain) == 30 * EACH // 2, "no element is left out: plain has no preference"
    cut = [result for result in results if result.left_out]
    assert cut
    for result, whole in zip(results, plain, strict=True):
        assert (result.documents, whole.left_out) == (whole.documents, ())
        if "list/transaction/contact/addr" in result.left_out:
            assert "<addr>" not in str(result.output)
        if not result.left_out:
            assert result.output == whole.output
    mixed = [Counter(one.left_out for one in some) for some in by_document(results).values()]
    assert any(len(counts) > 1 for counts in mixed), "elements of one document have different patterns"
    assert [one.to_dict() for one in taken] == [one.to_dict() for one in results]
    table = weir.results("Q1").to_arrow()
    assert [tuple(one or ()) for one in table["left_out"].to_pylist()] == [one.left_out for one in results]
    assert "of the elements list/transaction" in str(weir.status())


def test_elements_are_left_out_if_all_queries_iterate_over_them(weir: testing.Weir, taken: list[Result]) -> None:
    weir.execute(f"create stream transactions shed allowed; {PREFERRED}")
    overloaded(weir)
    weir.publish("transactions", lists(100))
    weir.step()
    results = list(weir.results("Q1"))
    assert len(by_document(results)) > 90, "hardly any document is left out as a whole"
    status = weir.status()
    assert isinstance(status, EngineStatus)
    stream = status.streams["transactions"]
    assert stream.shed == 0
    assert 0 < stream.left_out < 100 * EACH
    assert len(results) < 100 * EACH // 2
    assert f"{stream.left_out:,} elements of items left out under overload" in str(status)


ROOT = "create query root as for $l in stream('transactions')/list return $l/transaction/name"


@pytest.mark.parametrize("more", ["", ROOT])
def test_documents_are_left_out_if_they_are_made_up_for(weir: testing.Weir, taken: list[Result], more: str) -> None:
    """An element could not be evaluated later, and another query may need all elements of a document."""
    weir.execute(f"create stream transactions shed allowed make up within 1 hour; {PREFERRED} {more}")
    overloaded(weir)
    weir.publish("transactions", lists(100))
    weir.step()
    status = weir.status()
    assert isinstance(status, EngineStatus)
    assert status.streams["transactions"].shed > 0
    assert status.streams["transactions"].left_out == 0
    weir.run(until_idle=True)
    assert len(list(weir.results("Q1"))) == 100 * EACH // 2, "nothing is missing in the end"
    assert not any(result.left_out for result in weir.results("Q1"))


def test_a_repeated_micro_batch_has_the_same_results(
    weir: testing.Weir, taken: list[Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    weir.execute(f"create stream transactions shed allowed; {PREFERRED}")
    overloaded(weir)
    weir.publish("transactions", lists(40))
    outcomes = []

    def crash(commit: Commit) -> None:
        outcomes.append((commit.elements, commit.cut, commit.shedding, commit.matches))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(weir.table, "commit", crash)
        for latency in (0.0, 1000.0):  # by then there would be time for all
            if latency:
                weir.overload = Overload(latency)
            with pytest.raises(KeyboardInterrupt):
                weir.step()
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0], "elements were left out"
    weir.step()
    first = [result.to_dict() for result in weir.results("Q1")]
    with testing.open(weir.home.path) as again:
        assert [result.to_dict() for result in again.results("Q1")] == first
