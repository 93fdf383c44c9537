"""The process is killed repeatedly while it delivers: nothing is lost, and no acknowledged delivery is repeated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from fishweir import testing
from tests.delivery.servers import Hooks, Mailbox, Posted
from tests.engine.helpers import wait_for

RUN = """
import sys
from fishweir import testing
with testing.open(sys.argv[1]) as weir:
    weir.run()
"""
KILLED_AT = (3, 4, 9)


def test_killed_while_it_delivers(tmp_path: Path, hooks: Hooks, mailbox: Mailbox) -> None:
    box, home = tmp_path / "box.jsonl", tmp_path / "home"
    with testing.open(home) as weir:
        weir.execute(f"""
            create stream R (x int);
            create query big as select x from R where x > 5 do append '{box}';
            subscribe to big output http '{hooks.url}';
            subscribe to big output mail 'me@example.org';
        """)
        sent, taken = list(range(6, 36)), []
        running = start(home)
        requests = 0

        def answer(one: Posted) -> int | str:
            """Some requests kill the process before the response."""
            nonlocal requests
            requests += 1
            if requests in KILLED_AT:
                os.kill(running.pid, signal.SIGKILL)
                return "drop"
            taken.append(one.key)
            return 200

        hooks.answer = answer
        try:
            for value in sent:
                weir.publish("R", [{"x": value}])
                wait_for(lambda value=value, now=running: value in posted(hooks) or now.poll() is not None)
                if running.poll() is not None:
                    running = start(home)
            wait_for(lambda: not weir.letters() and len(posted(hooks)) == len(sent))
        finally:
            running.kill()
            running.wait()
    assert requests == len(hooks.posted) > max(KILLED_AT)
    assert posted(hooks) == sent, "in order, each once"
    assert len(taken) == len(set(taken)), "no acknowledged delivery is repeated"
    assert {one.key for one in hooks.posted} == set(taken), "unacknowledged deliveries are repeated with the same key"
    assert [json.loads(line)["output"]["x"] for line in box.read_text().splitlines()] == sent
    text = "".join(str(mail.get_body(("plain",)).get_content()) for mail in mailbox.mails)  # type: ignore[union-attr]
    assert {int(line.removeprefix("x: ")) for line in text.split("\r\n") if line} == set(sent)


def start(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", RUN, str(home)])


def posted(hooks: Hooks) -> list[int]:
    return [result["output"]["x"] for one in hooks.taken for result in one.results]
