"""Locates the data of the experiments: the shared folder beside the project, or generated data of the same shape.

The real data is optional. Every experiment reports which data it used.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "FISHWEIR_DATA"


def data_folder(name: str) -> Path | None:
    """The folder of a data set, or None if it has to be generated."""
    for place in _places():
        if (place / name).is_dir():
            return place / name
    return None


def _places() -> list[Path]:
    """Only the folder that the environment variable names; without it, `shared/data` in any parent folder."""
    given = os.environ.get(VARIABLE)
    if given:
        return [Path(given)]
    starts = (Path(__file__).resolve(), Path.cwd())
    return [above / "shared" / "data" for start in starts for above in (start, *start.parents)]
