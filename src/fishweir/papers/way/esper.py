"""A peer: Esper, which has an index of its statements' filters, and a context partition for each query.

Its jars are esper-compiler and esper-runtime with their dependencies, in the folder that FISHWEIR_ESPER names.
"""

from __future__ import annotations

from fishweir.papers.way.on_java import Program, numbers
from fishweir.papers.way.peers import Peer

PROGRAM = Program(
    "EsperBoxes",
    "FISHWEIR_ESPER",
    "esper-runtime-*.jar",
    query=lambda row: numbers(row["a"], row["b"], row["c"], row["d"]),
    document=lambda point: numbers(point["x"], point["y"]),
)
ESPER = Peer("Esper", PROGRAM.answering, most=100_000)
