"""The tables of delivery: who gets what (`subscriptions` to `channels`), and what is still to be sent (`outbox`).

A channel is one way to one target: output, arguments, stylesheet, interval. Queries that do the same share it, so ten
thousand queries that append to one file are one delivery a micro-batch. A subscription is in force from the change that
`added` it until the one that `dropped` it, like a query; what a micro-batch gives a channel can therefore be read again
at any time, and an outbox row only says which micro-batches it stands for: those after `after`, up to `upto`, without
the first `sent` results. If the two are equal, it stands for the single result number `sent` of that micro-batch.
`targets` are where order is kept: one delivery at a time, `due` while something waits. `timers` are the event list
(NiagaraCQ 3.6.1), sorted by `due`; `news` says in which micro-batch a query had results last.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, String, Table, Text, text

from fishweir.catalog.checksums import add_checksums
from fishweir.catalog.schema import metadata

targets = Table(
    "targets", metadata,
    Column("id", Integer, primary_key=True),
    Column("address", Text, nullable=False, unique=True),
    Column("host", Text, nullable=False),
    Column("due", Float),
    Index("targets_due", "due", sqlite_where=text("due is not null")),
)  # fmt: skip

channels = Table(
    "channels", metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False),
    Column("output", String, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("stylesheet", Text),
    Column("every", Float, nullable=False),
    Column("anchor", Float),
    Column("token", String, nullable=False, unique=True),
    Column("recent", Text),
)  # fmt: skip

subscriptions = Table(
    "subscriptions", metadata,
    Column("id", Integer, primary_key=True),
    Column("query", String, nullable=False),
    Column("feed", String, nullable=False),
    Column("channel", Integer, ForeignKey("channels.id"), nullable=False),
    Column("timed", Boolean, nullable=False),
    Column("by_query", Boolean, nullable=False),
    Column("start", Float),
    Column("expire", Float),
    Column("text", Text, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("added", Integer, nullable=False),
    Column("dropped", Integer),
    Index("subscriptions_of", "query", "timed"),
    Index("subscriptions_to", "channel"),
    Index("subscriptions_by", "text", sqlite_where=text("not by_query")),
    Index("subscriptions_expire", "expire", sqlite_where=text("expire is not null and dropped is null")),
)  # fmt: skip

timers = Table(
    "timers", metadata,
    Column("channel", Integer, ForeignKey("channels.id"), primary_key=True),
    Column("due", Float, nullable=False),
    Column("batch", Integer, nullable=False),
    Index("timers_due", "due"),
)  # fmt: skip

news = Table(
    "news", metadata,
    Column("query", String, primary_key=True),
    Column("batch", Integer, nullable=False),
)  # fmt: skip

outbox = Table(
    "outbox", metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False),
    Column("channel", Integer, ForeignKey("channels.id"), nullable=False),
    Column("after", Integer, nullable=False),
    Column("upto", Integer, nullable=False),
    Column("sent", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("position", BigInteger),
    Column("dead", Boolean, nullable=False),
    Column("error", Text),
    Column("made", Float, nullable=False),
    Index("outbox_of", "target", "dead", "id"),
    sqlite_autoincrement=True,  # an id is never given again: it is what receivers know a delivery by
)  # fmt: skip

COLLECTED = "collected"
"""The fact that says up to which micro-batch results have been handed to the outbox."""
WAITED = "waited "
"""How facts begin that say of a query, by its number, that its start was to come when it was registered."""

facts = Table(
    "facts", metadata,
    Column("name", String, primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip

add_checksums(metadata)
