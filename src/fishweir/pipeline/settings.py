"""Settings of a job and their defaults."""

DOCUMENTS_PER_BATCH = 20_000
"""At most so many documents a micro-batch."""

STATE_LIMIT = 4 * 2**30
"""Bytes on disk. What joins retain for late items is kept below this; what declared lateness needs is kept anyway."""

IDLE = 3600.0
"""Seconds without an item after which a stream holds nobody up any more."""
AHEAD = 200_000
"""Sources and publishers wait while this many entries have not been evaluated."""
WALKED = "walked.json"
"""The file with the counters of a stream's walk, beside its log."""
