"""Settings of a job and their defaults."""

DOCUMENTS_PER_BATCH = 20_000
"""The maximum number of documents of a micro-batch."""

STATE_LIMIT = 4 * 2**30
"""Bytes on disk. The state that joins retain for late items is kept below this limit; state that declared lateness
needs is kept regardless.
"""

IDLE = 3600.0
"""Seconds without an item after which a stream no longer holds up others."""
AHEAD = 200_000
"""The number of unevaluated entries at which sources and publishers wait."""
WALKED = "walked.json"
"""The file with the counters of a stream's walk, beside its log."""
