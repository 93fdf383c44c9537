"""Readable durations."""

from __future__ import annotations

_UNITS = ((86_400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))


def interval_text(seconds: float) -> str:
    """The duration in the largest unit of which it is a whole multiple.

    >>> interval_text(604800), interval_text(5400), interval_text(0.5)
    ('7 days', '90 minutes', '0.5 seconds')
    """
    size, unit = next((found for found in _UNITS if seconds % found[0] == 0), _UNITS[-1])
    return f"{seconds / size:g} {unit}{'' if seconds == size else 's'}"
