"""Parses feeds in separate processes: parsing is slow Python code, and in a thread it would delay all others.

In: the body of a feed. Out: its items. Processes are started on demand, reused, and stopped after an idle time. A
process that takes too long is killed. All functions run in the fetching thread.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import pickle
import sys
from functools import lru_cache

from fishweir.intake.sources.fetch import FetchError, submit
from fishweir.intake.sources.items import Feed
from fishweir.intake.sources.parser_process import HEAD, packed

LONGEST, IDLE, AT_ONCE = 300.0, 60.0, 2
"""The maximum seconds for parsing one feed, the seconds that an idle process is kept, the maximum number of
processes."""

COMMAND = ("-P", "-m", "fishweir.intake.sources.parser_process")


class Parser:
    """One process, which handles one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.retiring: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls) -> Parser:
        """Starts a process in its own session, so that keyboard interrupts do not reach it."""
        paths = os.pathsep.join(map(os.path.abspath, sys.path))
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *COMMAND,
            stdin=pipe,
            stdout=pipe,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,
        )
        _running.add(parser := cls(process))
        return parser

    async def ask(self, body: bytes, url: str, content_type: str) -> Feed:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(packed((body, url, content_type)))
        await self.process.stdin.drain()
        length = int.from_bytes(await self.process.stdout.readexactly(HEAD), "big")
        found: Feed = pickle.loads(await self.process.stdout.readexactly(length))
        return found

    def keep(self) -> None:
        """Cancels the idle timeout, because the process has work again or has ended."""
        if self.retiring is not None:
            self.retiring.cancel()

    async def end(self) -> None:
        self.keep()
        _running.discard(self)
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


_running: set[Parser] = set()
_free: list[Parser] = []


async def parse(body: bytes, url: str, content_type: str) -> Feed:
    """The items of a feed. Raises FetchError."""
    async with _limit():
        try:
            parser = _acquire() or await Parser.start()
        except OSError as error:
            raise FetchError(f"the parser process cannot be started: {error.strerror or error}") from None
        try:
            async with asyncio.timeout(LONGEST):
                found = await parser.ask(body, url, content_type)
        except TimeoutError:
            await parser.end()
            raise FetchError(f"parsing took longer than {LONGEST:g} s") from None
        except (OSError, EOFError):
            await parser.end()
            raise FetchError("the parser process has crashed") from None
        except BaseException:
            await parser.end()
            raise
        _release(parser)
        return found


def _acquire() -> Parser | None:
    """An idle process, if there is one."""
    while _free:
        parser = _free.pop()
        parser.keep()
        if parser.process.returncode is None:
            return parser
        _running.discard(parser)
    return None


def _release(parser: Parser) -> None:
    _free.append(parser)
    parser.retiring = asyncio.get_running_loop().call_later(IDLE, _retire, parser)


def _retire(parser: Parser) -> None:
    _free.remove(parser)
    task = asyncio.get_running_loop().create_task(parser.end())
    _ending.add(task)
    task.add_done_callback(_ending.discard)


_ending: set[asyncio.Task[None]] = set()
"""Tasks in progress: the loop itself keeps no references to them."""


@lru_cache(maxsize=1)
def _limit() -> asyncio.Semaphore:
    """The limit on processes. Called within the loop; the first call also registers the cleanup of all processes."""
    atexit.register(lambda: submit(end_all()).result(10.0))
    return asyncio.Semaphore(AT_ONCE)


async def end_all() -> None:
    _free.clear()
    await asyncio.gather(*(parser.end() for parser in list(_running)))
