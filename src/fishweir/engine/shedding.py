"""What queries prefer, by source, as the shedder weighs it: looked up once per version of the catalog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from fishweir.algebra.nodes import Source
from fishweir.catalog.catalog import Catalog
from fishweir.catalog.wishes import preferences
from fishweir.pipeline.home import Home
from fishweir.pipeline.shed import Shedder, Wishes
from fishweir.shedding.decision import Wish
from fishweir.shedding.overload import Overload


def shedder_of(home: Home, catalog: Catalog, overload: Overload | None) -> Shedder | None:
    return None if overload is None else Shedder(home, overload, wishes_of(catalog))


def wishes_of(catalog: Catalog) -> Callable[[int], Wishes]:
    known: dict[int, Wishes] = {}

    def at(version: int) -> Wishes:
        if version not in known:
            known.clear()
            known[version] = _by_source(catalog)
        return known[version]

    return at


def _by_source(catalog: Catalog) -> Wishes:
    found: defaultdict[Source, list[Wish]] = defaultdict(list)
    for shape, preference, subscribers in preferences(catalog.engine):
        for source in dict.fromkeys(shape.sources):
            found[source].append(Wish(preference, subscribers))
    return found
