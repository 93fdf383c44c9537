"""Joins by rows, in the order of their work: rows of a side, what new rows meet, pairs looked at one by one."""

from fishweir.sharing.joins.probing import Joined, join_rows
from fishweir.sharing.joins.row_joins import RowJoin, row_joins
from fishweir.sharing.joins.side_rows import edge_values, side_rows
from fishweir.sharing.joins.verifying import distances, edges_hold, verify

__all__ = [
    "Joined",
    "RowJoin",
    "distances",
    "edge_values",
    "edges_hold",
    "join_rows",
    "row_joins",
    "side_rows",
    "verify",
]
