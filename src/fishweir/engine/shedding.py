"""Preferences of queries by source, for the shedder: looked up once per catalog version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from fishweir.algebra.nodes import Source
from fishweir.catalog.catalog import Catalog
from fishweir.catalog.preference_counts import preferences
from fishweir.delivery.service import DeliveryService
from fishweir.pipeline.calibration import calibrated
from fishweir.pipeline.home import Home
from fishweir.pipeline.results import ResultReader
from fishweir.pipeline.shed import PreferenceGroups, Shedder
from fishweir.shedding.overload import Overload
from fishweir.shedding.suspension import PreferenceGroup


def shedder_of(
    home: Home, catalog: Catalog, overload: Overload | None, reader: ResultReader, service: DeliveryService
) -> Shedder | None:
    """The shedder of a job with a target latency. Under overload, mails are combined into digests."""
    if overload is None:
        return None
    service.outbox.is_overloaded = lambda: overload.shedding
    groups = preference_groups_of(catalog)
    calibrated()  # done now, since there is no time for it under overload
    groups(catalog.version())

    def behind() -> list[tuple[int, int]]:
        collector = service.collector
        return [(commit.batch, commit.documents) for commit in collector.table.known(collector.batch)]

    return Shedder(home, overload, groups, reader.spent, behind)


def preference_groups_of(catalog: Catalog) -> Callable[[int], PreferenceGroups]:
    known: dict[int, PreferenceGroups] = {}

    def at(version: int) -> PreferenceGroups:
        if version not in known:
            known.clear()
            known[version] = _by_source(catalog)
        return known[version]

    return at


def _by_source(catalog: Catalog) -> PreferenceGroups:
    found: defaultdict[Source, list[PreferenceGroup]] = defaultdict(list)
    read = [stream.virtual for _, stream in catalog.streams().values() if stream.virtual]
    for shape, preference, subscribers, is_sent, is_read in preferences(catalog.database, read):
        for source in dict.fromkeys(shape.sources):
            found[source].append(PreferenceGroup(preference, subscribers, shape, is_sent or is_read, is_read))
    return found
