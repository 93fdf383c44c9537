"""A process that parses feeds for its parent: requests on its standard input, answers on its standard output.

Each message is its length and a pickle. The process ends when its input does, even in the middle of a feed, so it never
outlives its parent.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from queue import SimpleQueue
from typing import Any, BinaryIO

from fishweir.intake.sources.items import parse_feed

HEAD = 8
"""The number of bytes of a message's length."""


def packed(message: Any) -> bytes:
    text = pickle.dumps(message)
    return len(text).to_bytes(HEAD, "big") + text


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keeps output of libraries out of the answers
    requests: SimpleQueue[tuple[bytes, str, str]] = SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, requests), daemon=True).start()
    while True:
        answers.write(packed(parse_feed(*requests.get())))
        answers.flush()


def _receive(source: BinaryIO, requests: SimpleQueue[tuple[bytes, str, str]]) -> None:
    while len(head := source.read(HEAD)) == HEAD:
        length = int.from_bytes(head, "big")
        if len(text := source.read(length)) < length:
            break
        requests.put(pickle.loads(text))
    os._exit(0)


if __name__ == "__main__":
    main()
