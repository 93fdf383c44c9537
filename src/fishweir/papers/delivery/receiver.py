"""A web server that receives POSTs in a separate process, so that its cost is not part of the cost of delivery.

It speaks just enough HTTP: POSTs with a length, answered over the same connection. A GET returns what it has received
as JSON: the path of each POST and the numbers in it, in the order of acknowledgement.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.request import urlopen

Taken = list[tuple[str, list[int]]]


class _Receiver(asyncio.Protocol):
    def __init__(self, taken: Taken) -> None:
        self.taken, self.buffer = taken, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            if len(self.buffer) < end + 4 + size:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + size], self.buffer[end + 4 + size :]
            method, path, _ = head.split(b" ", 2)
            self.transport.write(self._answer(method, path, body))

    def _answer(self, method: bytes, path: bytes, body: bytes) -> bytes:
        shown = b""
        if method == b"POST":
            self.taken.append((path.decode(), [result["output"]["x"] for result in json.loads(body)]))
        else:
            shown = json.dumps(self.taken).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(shown), shown)


async def _serve() -> None:
    taken: Taken = []
    server = await asyncio.get_running_loop().create_server(lambda: _Receiver(taken), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def receiver() -> Iterator[tuple[str, Callable[[], Taken]]]:
    """The address of a receiver, and a function that returns what it has received so far."""
    with subprocess.Popen([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"

        def taken() -> Taken:
            with urlopen(url) as answer:
                return [(path, numbers) for path, numbers in json.load(answer)]

        try:
            yield url, taken
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_serve())
