"""Where the experiments' data is: the shared folder beside the project, or generated of the same shape.

Nobody has to have the real data; every experiment says which it used.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "FISHWEIR_DATA"


def data_folder(name: str) -> Path | None:
    """The folder of a data set, or None where it has to be generated."""
    for place in _places():
        if (place / name).is_dir():
            return place / name
    return None


def _places() -> list[Path]:
    """What the environment variable names and nothing else; without it `shared/data` on the way up."""
    given = os.environ.get(VARIABLE)
    if given:
        return [Path(given)]
    starts = (Path(__file__).resolve(), Path.cwd())
    return [above / "shared" / "data" for start in starts for above in (start, *start.parents)]
