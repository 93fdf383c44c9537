"""Queries in columns equal queries one by one: on every database, and for any number of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fishweir import HomeError, testing
from fishweir.algebra.path_queries import Paths, own_shape
from fishweir.catalog import database
from fishweir.catalog.catalog import Catalog
from fishweir.catalog.other_databases import OtherDatabase

SCRIPT = """
create stream R (x int); create stream D;
create query "it's \\ ""quoted"" ü" as select x from R where x > 5;
create query deep as D//a[b->b][c = 'constant'];
create feed news from D where [title contains 'weir'];
"""


@pytest.fixture(params=["sqlite", "other"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    with testing.open(tmp_path / "home") as weir:
        weir.execute(SCRIPT)
        weir.register_many("create query q$n as select x from R where x = $n", [{"n": n} for n in range(50)])
        weir.execute("".join(f"create query p{n} as D//a/b{n}[c = 'd'];" for n in range(70)))  # as `Paths`
        weir.drop("q7")
        weir.replace("create query q8 as select x from R where x > 8")
    found = Catalog(tmp_path / "home" / "catalog.db", is_new=False)
    if request.param == "other":
        found.close()
        found.database = OtherDatabase(f"sqlite:///{tmp_path / 'home' / 'catalog.db'}")
    yield found
    found.close()


@pytest.mark.parametrize("values_per_statement", [1, 7, 10_000])
def test_columns_equal_single_queries(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, values_per_statement: int
) -> None:
    monkeypatch.setattr(database, "VALUES_PER_STATEMENT", values_per_statement)
    with catalog.database.connect() as connection:
        numbers = connection.scalars("select number from queries")
    queries = catalog.queries_by_number(numbers)
    assert len(queries) == 3 + 50 + 70 + 1
    assert any(isinstance(catalog.shape(shape), Paths) for shape in catalog.query_columns(numbers)[2])
    constants = catalog.constants(numbers)
    found = {row[0]: row[1:] for row in zip(*catalog.query_columns(numbers), strict=True)}
    assert found.keys() == constants.keys() == queries.keys()
    for number, (name, shape, added, preferred) in found.items():
        query = queries[number]
        assert (name, added, preferred) == (query.name, query.added, query.preferred)
        assert own_shape(catalog.shape(shape), constants[number]) == (query.shape, query.constants)


def test_a_missing_query_is_named(catalog: Catalog) -> None:
    with pytest.raises(HomeError, match="query 999, which has results, is missing from the catalog"):
        catalog.query_columns([1, 2, 999])


def test_no_queries(catalog: Catalog) -> None:
    assert catalog.query_columns([]) == ([], [], [], [], [])
    assert catalog.constants([]) == {}
