"""Spark's daemon for Python workers, with what they need loaded before they are forked: once, not once in each of them.

Without it the first micro-batch waits until every worker has imported the same modules, on all cores at once.
"""

from __future__ import annotations

import sys

from pyspark.daemon import manager

if __name__ == "__main__":
    if sys.argv[1:] == ["pyspark.worker"]:
        import fishweir.pipeline.probe
        import fishweir.pipeline.worker  # noqa: F401
    manager()
