"""Spark's daemon for Python workers, with what they need loaded before they are forked: once, not once in each of them.

Without it the first micro-batch waits until every worker has imported the same modules, on all cores at once.
"""

from __future__ import annotations

import sys
from pathlib import Path


def without_zip(path: list[str]) -> list[str]:
    """Spark puts a zip of pyspark before the installed one. Python keeps no compiled modules of a zip, so each process
    would compile them: where the zip belongs to the installed package, it is left out."""
    zips = [entry for entry in path if Path(entry).name == "pyspark.zip"]
    packages = {entry: Path(entry).resolve().parents[2] for entry in zips if len(Path(entry).resolve().parents) > 2}
    installed = {Path(entry).resolve() / "pyspark" for entry in path if entry not in zips}
    return [entry for entry in path if entry not in packages or packages[entry] not in installed]


if __name__ == "__main__":
    sys.path[:] = without_zip(sys.path)
    from pyspark.daemon import manager

    if sys.argv[1:] == ["pyspark.worker"]:
        import fishweir.pipeline.probe
        import fishweir.pipeline.worker  # noqa: F401
    manager()
