"""A process that applies stylesheets for its parent, which kills it if one takes too long.

In: the path of a stylesheet and its modification time, the operation (`render` or `apply`), and items. Out: for each
item in order, the result or the reason for the failure. The process ends with its parent, even in the middle of an
item.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from fishweir.delivery.stylesheets import BadItem, Stylesheet
from fishweir.errors import QueryError

MEMORY = 1 << 30
"""The memory limit of the process in bytes."""

Request = tuple[str, int, str, Sequence[Any]]


@lru_cache(maxsize=20)
def _stylesheet(path: str, _written: int) -> Stylesheet:
    return Stylesheet(path)


def answers(request: Request) -> Iterator[tuple[bool, Any]]:
    path, written, operation, items = request
    for item in items:
        try:
            stylesheet = _stylesheet(path, written)
            yield True, stylesheet.apply(item) if operation == "apply" else stylesheet.render(item)
        except BadItem as error:
            yield False, str(error)
        except QueryError as error:
            yield False, error.reason
        except MemoryError:
            yield False, f"the stylesheet {path} needs too much memory"


def main(connection: Connection[Any, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    requests: SimpleQueue[Request] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, requests), daemon=True).start()
    connection.send(None)  # the time limit of the stylesheets starts here
    while True:
        for answer in answers(requests.get()):
            connection.send(answer)


def _receive(connection: Connection[Any, Any], requests: SimpleQueue[Request]) -> None:
    try:
        while True:
            requests.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
