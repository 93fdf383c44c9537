"""A peer: Lucene Monitor, which stores queries in an index of their terms.

Its jars are core, monitor, memory, queries and analysis-common of one version, in the folder that FISHWEIR_LUCENE
names.
"""

from __future__ import annotations

import re

from fishweir.papers.way.on_java import Program, text
from fishweir.papers.way.peers import Peer

PROGRAM = Program(
    "LuceneMonitor",
    "FISHWEIR_LUCENE",
    "lucene-monitor-*.jar",
    query=lambda row: text(row["a"]) + text(row["b"]),
    document=lambda document: text(re.sub("<[^>]*>", "", document)),
)
LUCENE = Peer("Lucene Monitor", PROGRAM.answering, most=100_000, documents=2_000)
