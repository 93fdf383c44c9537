"""Sends conditions that programs have registered to the workers.

A task that travels holds an `Extensions`; where it arrives, the conditions and their indexes are registered before the
task runs. Functions of a module travel by name and the driver's module path goes along, so the module must be there
on every worker; functions of a script or a notebook travel as they are.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark import cloudpickle

from fishweir.algebra.operators import Condition, add_condition, registered_conditions, remove_condition
from fishweir.evaluate.index.registry import IndexFactory, add_index, find_index, remove_index


class Extensions:
    """What is registered when it is pickled; unpickling registers it."""

    def __reduce__(self) -> tuple[Any, ...]:
        found = [(condition, find_index(condition)) for condition in registered_conditions()]
        return (_install, (tuple(sys.path), cloudpickle.dumps(found))) if found else (Extensions, ())


def _install(path: tuple[str, ...], pickled: bytes) -> Extensions:
    sys.path.extend(folder for folder in path if folder not in sys.path)
    found: list[tuple[Condition, IndexFactory | None]] = cloudpickle.loads(pickled)
    for condition in registered_conditions():  # of earlier tasks: a keyword may have another meaning now
        remove_condition(condition.name)
        remove_index(condition.name)
    for condition, index in found:
        add_condition(condition)
        if index is not None:
            add_index(condition.name, index)
    return Extensions()
