"""A peer: Esper, which has the filters of its statements in an index, and a partition of a context for each query.

Its jars are esper-compiler and esper-runtime with what they depend on, in the folder that FISHWEIR_ESPER names.
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
