"""A new kind of group from outside the package: registration, plan, merge, job, restart, results and explain."""

from __future__ import annotations

from pathlib import Path

import pytest

import fishweir
from fishweir import testing
from tests.every_nth import every_nth

HIT, MISS = "<item><hit/></item>", "<item><other/></item>"


def fired(weir: testing.Weir, name: str) -> list[str]:
    return sorted((id for result in weir.results(name) for id in result.documents), key=lambda id: int(id[2:]))


def expected(bodies: list[str], n: int) -> list[str]:
    hits = [f"S-{i}" for i, body in enumerate(bodies, 1) if body == HIT]
    return hits[n - 1 :: n]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_every_nth_over_micro_batches_and_restarts(tmp_path: Path, parallelism: int) -> None:
    bodies = [HIT if i % 3 else MISS for i in range(60)]
    for start in range(0, 60, 20):
        with testing.open(tmp_path / "home", parallelism=parallelism, documents_per_batch=7) as weir:
            if not start:
                weir.execute("create stream S; create query plain as S//hit")
                assert [weir.register(every_nth(f"q{n}", "S", "hit", n)) for n in (2, 5)] == ["q2", "q5"]
            weir.publish("S", bodies[start : start + 20])
            weir.run(until_idle=True)
            assert fired(weir, "q2") == expected(bodies[: start + 20], 2)
            assert fired(weir, "q5") == expected(bodies[: start + 20], 5)
            assert len(fired(weir, "plain")) == bodies[: start + 20].count(HIT), "built-in kinds continue to work"
            assert weir.status("q5").results == len(fired(weir, "q5"))


def test_it_is_planned_merged_dropped_and_explained(tmp_path: Path) -> None:
    with testing.open(tmp_path / "home") as weir:
        weir.execute("create stream S")
        for n in (1, 2, 3):
            weir.register(every_nth(f"q{n}", "S", "hit", n))
            weir.publish("S", [HIT])
            weir.step()
        assert "counts    every n-th with hit in S, n = 3" in weir.explain("q3")
        assert "shared    by 3 queries" in weir.explain("q3"), "the segments were merged"
        assert "signature every n-th with hit in S" in weir.explain()
        weir.drop("q1")
        weir.publish("S", [HIT, HIT, HIT])
        weir.step()
        assert fired(weir, "q1") == ["S-1", "S-2", "S-3"]
        assert fired(weir, "q2") == ["S-2", "S-4", "S-6"]
        assert fired(weir, "q3") == ["S-3", "S-6"]


def test_through_the_spark_job(tmp_path: Path, spark) -> None:  # type: ignore[no-untyped-def]
    """The workers import the module that the segment names."""
    bodies = [HIT if i % 2 else MISS for i in range(30)]
    with fishweir.open(tmp_path / "home", spark=spark) as weir:
        weir.execute("create stream S")
        weir.register(every_nth("q4", "S", "hit", 4))
        weir.publish("S", bodies)
        weir.run(until_idle=True)
        assert fired(weir, "q4") == expected(bodies, 4)  # type: ignore[arg-type]
