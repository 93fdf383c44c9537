"""Sends the conditions that programs have registered to the workers.

A task that is sent contains an `Extensions`. On the worker, the conditions and their indexes are registered before the
task runs. Functions of a module are sent by name, together with the driver's module path, so the module must exist on
every worker. Functions of a script or a notebook are sent by value.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark import cloudpickle

from fishweir.algebra.operators import Condition, add_condition, registered_conditions, remove_condition
from fishweir.evaluate.index.registry import IndexFactory, add_index, find_index, remove_index


class Extensions:
    """The registered conditions at the time of pickling; unpickling registers them."""

    def __reduce__(self) -> tuple[Any, ...]:
        found = [(condition, find_index(condition)) for condition in registered_conditions()]
        return (_install, (tuple(sys.path), cloudpickle.dumps(found))) if found else (Extensions, ())


def _install(path: tuple[str, ...], pickled: bytes) -> Extensions:
    sys.path.extend(folder for folder in path if folder not in sys.path)
    found: list[tuple[Condition, IndexFactory | None]] = cloudpickle.loads(pickled)
    for condition in registered_conditions():  # from earlier tasks: a keyword may have a new meaning
        remove_condition(condition.name)
        remove_index(condition.name)
    for condition, index in found:
        add_condition(condition)
        if index is not None:
            add_index(condition.name, index)
    return Extensions()
