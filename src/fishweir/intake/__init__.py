"""Arrivals of every kind into the durable logs of their streams, which the job reads by offsets."""

from fishweir.intake.log import Entry, StreamLog
from fishweir.intake.schema import log_batch
from fishweir.intake.sources.addresses import is_url, without_credentials
from fishweir.intake.sources.push import documents_batch
from fishweir.intake.sources.refresh import Refresh
from fishweir.intake.sources.registry import Fetching, Source, check_source, open_source

__all__ = [
    "Entry", "Fetching", "Refresh", "Source", "StreamLog", "check_source", "documents_batch", "is_url", "log_batch",
    "open_source", "without_credentials",
]  # fmt: skip
