"""Intake: appends arrivals of every kind to the durable logs of their streams, which the job reads by offsets.

The names below are loaded lazily: declaring a stream does not need the code that reads files.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fishweir.intake.log import Entry, StreamLog
    from fishweir.intake.schema import log_batch
    from fishweir.intake.sources.addresses import is_url, without_credentials
    from fishweir.intake.sources.push import documents_batch
    from fishweir.intake.sources.refresh import Refresh
    from fishweir.intake.sources.registry import Fetching, Source, check_source, open_source

_PLACES = {
    "Entry": "log", "StreamLog": "log", "log_batch": "schema", "is_url": "sources.addresses",
    "without_credentials": "sources.addresses", "Refresh": "sources.refresh",
    "documents_batch": "sources.push", "Fetching": "sources.registry",
    "Source": "sources.registry", "check_source": "sources.registry", "open_source": "sources.registry",
}  # fmt: skip

__all__ = [
    "Entry", "Fetching", "Refresh", "Source", "StreamLog", "check_source", "documents_batch", "is_url", "log_batch",
    "open_source", "without_credentials",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fishweir.intake' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"fishweir.intake.{_PLACES[name]}"), name)
