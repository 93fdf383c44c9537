"""Measures registration in a separate process, so that the peak memory is that of registration alone.

`python -m fishweir.papers.niagaracq.registration many|script HOME N` prints progress lines `done COUNT` and at the end
one line of JSON: seconds and peak resident memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fishweir.papers.experiment.figures import Figure
from fishweir.papers.niagaracq.kernel import CHANGED
from fishweir.papers.niagaracq.quotes import load_market
from fishweir.papers.niagaracq.workloads import STATEMENTS, STREAM, Part, make_workload

TYPE, CASE = "Type 1", "F=100"
Done = Callable[[int], None]


def measure_registration(kind: str, home: Path, n: int, done: Done) -> Figure:
    """Registers N queries of type 1 in a new process."""
    command = [sys.executable, "-m", "fishweir.papers.niagaracq.registration", kind, str(home), str(n)]
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = line
            if line.startswith("done "):
                done(int(line.split()[1]))
    if process.returncode:
        raise RuntimeError(f"registration of {n:,} queries ended with {process.returncode}")
    measured = json.loads(last)
    name = {"many": "register_many", "script": "execute"}[kind]
    return Figure("registration", TYPE, CASE, n, name, measured["seconds"], peak_mb=measured["peak_mb"])


def register(kind: str, home: Path, n: int) -> dict[str, Any]:
    """Registers the queries. Runs in the new process."""
    from fishweir.engine.weir import Weir

    market = load_market()
    (part,) = make_workload(TYPE, CASE, n, market, market.changed(CHANGED)).parts
    with Weir(home) as weir:
        weir.execute(f"create stream {STREAM}")
        run = _many(weir, part) if kind == "many" else _script(weir, part)
        before = peak_megabytes()
        began = time.perf_counter()
        count = run()
        seconds = time.perf_counter() - began
        if count != n or len(weir.catalog.names()) != n:
            raise AssertionError(f"{count} of {n} queries were registered")
    return {"seconds": seconds, "peak_mb": peak_megabytes(), "before_mb": before}


def _many(weir: Any, part: Part) -> Callable[[], int]:
    rows = part.rows()
    return lambda: weir.register_many(STATEMENTS[part.type], rows, lambda count: print("done", count, flush=True))


def _script(weir: Any, part: Part) -> Callable[[], int]:
    script = ";\n".join(part.texts())
    return lambda: len(weir.execute(script))


def peak_megabytes() -> float:
    """The process's peak resident memory (VmHWM, or getrusage if there is no /proc)."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 1024
    import resource

    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    print(json.dumps(register(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))), flush=True)
