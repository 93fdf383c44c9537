"""The catalog of a home, which is rejected if it is an older copy.

The home records the progress of its catalog (`catalog.json`): the version, written after each change, and the number of
runs, written when the job starts and ends. A catalog behind that record was restored from a copy or has lost its newest
transactions: queries would be missing, and results delivered twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fishweir.catalog.catalog import Catalog
from fishweir.catalog.checksums import RESTORE
from fishweir.errors import CannotWrite, HomeError
from fishweir.pipeline.home import CatalogNote, Home


def open_catalog(home: Home, url: str | None = None) -> Catalog:
    """Opens the catalog of a home; `url` is an SQLAlchemy URL for an external catalog."""
    place = url or home.path / "catalog.db"
    noted = home.catalog_noted()
    catalog = Catalog(place, home.id, not home.has_streams)
    try:
        check_progress(catalog, noted)
    except HomeError:
        catalog.close()
        raise
    return catalog


def catalog_address(catalog: Catalog) -> str:
    """The SQLAlchemy URL by which another process can open a catalog."""
    return catalog.database.address


def check_progress(catalog: Catalog, noted: CatalogNote) -> None:
    """Raises an error if the catalog is behind its recorded progress."""
    now, runs = catalog.version(), catalog.generation()
    if now < noted.version or runs < noted.generation:
        behind = f"change {now:,} of {noted.version:,}, run {runs:,} of {noted.generation:,}"
        raise HomeError(
            f"the catalog {catalog.place} is older than its home ({behind}): {RESTORE}. If there is none, `fishweir "
            "repair --accept-older-catalog` continues without the changes and deliveries made since then"
        )


def record_progress(home: Home, catalog: Catalog) -> None:
    """Records the progress of the catalog. If that fails, the next change or run records it."""
    own = catalog.place == str(home.path / "catalog.db")
    with suppress(CannotWrite):
        home.note_catalog(CatalogNote(catalog.version(), catalog.generation(), own))


@contextmanager
def counted_run(home: Home, catalog: Catalog) -> Iterator[None]:
    """Counts the start and the end of a run, in the catalog first."""
    catalog.next_generation()
    record_progress(home, catalog)
    try:
        yield
    finally:
        with suppress(HomeError):
            catalog.next_generation()
            record_progress(home, catalog)
