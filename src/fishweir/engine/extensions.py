"""Extensions by programs: conditions on texts and source formats. Actions are registered with a weir.

Extensions are known only to this process. A program registers them before it opens a home whose queries or streams use
them. The workers of the Spark job get conditions with their tasks (`pipeline/spark/extensions.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fishweir.algebra.nodes import StreamDefinition
from fishweir.algebra.operators import Condition, add_condition, remove_condition
from fishweir.errors import QueryError
from fishweir.evaluate.index.registry import IndexFactory, add_index, remove_index
from fishweir.intake.log import StreamLog
from fishweir.intake.sources.registry import Source, SourceFormat, add_format, remove_format
from fishweir.languages.lexical import is_name
from fishweir.languages.streams.language import ADDED_FORMATS


def register_condition(condition: Condition, index: IndexFactory | None = None) -> None:
    """Registers a condition on texts, written as `value KEYWORD 'constant'` in RoSeS, SQL and XSCL.

    Without an index, it is evaluated on each distinct pair of a value and a constant.
    """
    add_condition(condition)
    remove_index(condition.name)
    if index is not None:
        add_index(condition.name, index)


def unregister_condition(name: str) -> None:
    """Removes a registered condition. Queries that use it can no longer be evaluated."""
    remove_condition(name)
    remove_index(name)


def register_source(
    format: str,
    open: Callable[[StreamDefinition, StreamLog, Path], Source],
    check: Callable[[StreamDefinition, Path], None] | None = None,
) -> None:
    """Registers a format for `create stream ... from '...' format NAME`.

    `open` is called with the stream, its log and the base folder of relative paths. `check` is called at the
    declaration and raises SourceError for a stream that could never be read.
    """
    name = format.lower()
    if not is_name(name):
        raise QueryError(f"'{format}' cannot be the name of a format: expected one word")
    add_format(name, SourceFormat(open, check))
    ADDED_FORMATS.add(name)


def unregister_source(format: str) -> None:
    """Removes a registered format. Its streams can no longer be read."""
    remove_format(format.lower())
    ADDED_FORMATS.discard(format.lower())
