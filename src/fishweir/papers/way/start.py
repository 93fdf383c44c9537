"""Part `start`: processor time of short commands, and the wall time until a new process has its first result.

The peer is a bare Spark streaming query with `mapInArrow` over one file, with Spark's own settings. Both are started in
separate processes, in turns, and timed from the start of the process until the file with the result exists. A second
run is one in a process that has run before.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fishweir.engine.weir import Weir
from fishweir.papers.experiment.figures import Target
from fishweir.papers.way.part import Measured, Part, Setting, home_folder

PATIENCE = 600.0
"""Seconds after which a process is considered to have failed."""
BARE = """
import os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from fishweir.java import ensure_java

folder, out = Path(sys.argv[1]), Path(sys.argv[2])

def chosen(batches):
    import pyarrow.compute as pc
    for batch in batches:
        yield batch.filter(pc.match_substring(batch.column("value"), "7"))

def write(frame, batch):
    rows = frame.collect()
    if rows:
        out.write_text("\\n".join(row.value for row in rows))

os.environ["JAVA_HOME"] = ensure_java()
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
lines = spark.readStream.text(str(folder)).mapInArrow(chosen, "value string")
query = lines.writeStream.foreachBatch(write).option("checkpointLocation", str(folder) + ".checkpoint").start()
query.processAllAvailable()
query.stop()
spark.stop()
"""
SCRIPT = """
create stream R (x int) from '{data}' format csv;
create query seven as select x from R where x = 7 do append '{out}';
"""


@dataclass(frozen=True)
class Figure:
    measured: str
    contestant: str
    seconds: float

    def point(self) -> tuple[str, float, float | None]:
        return f"{self.measured}, {self.contestant}", 0, None


def measure(setting: Setting) -> Measured:
    rounds: int = setting.sizes_of("start", 3, 1)
    figures = []
    with home_folder() as home:
        home.parent.mkdir(parents=True, exist_ok=True)
        script = home.parent / "few.sql"
        script.write_text("create stream R (x int); create query q as select x from R where x > 3")
        for name, *command in (
            ("--help", "--help"),
            ("execute", "execute", "-f", str(script), "--home", str(home)),
            ("status", "status", "--home", str(home)),
        ):
            setting.say(f"fishweir {name}")
            least = min(processor_time(["-m", "fishweir", *command]) for _ in range(rounds + 1))
            figures.append(Figure(f"fishweir {name}, processor time", "Fishweir", least))
    own, bare = [], []
    for turn in range(rounds):
        setting.say(f"first result of a new process, {turn + 1} of {rounds}")
        with home_folder() as home:
            own.append(first_result(home.parent, fishweir=True))
        with home_folder() as home:
            bare.append(first_result(home.parent, fishweir=False))
    figures.append(Figure("first result, wall time", "Fishweir", statistics.median(own)))
    figures.append(Figure("first result, wall time", "bare Spark", statistics.median(bare)))
    setting.say("a second run")
    figures.append(Figure("a second run in a living process, wall time", "Fishweir", second_run(setting)))
    return Measured(figures, targets(figures))


def processor_time(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_result(folder: Path, fishweir: bool) -> float:
    """Seconds from the start of a process until its result is in a file."""
    data, out = folder / "data", folder / "out.txt"
    data.mkdir(parents=True)
    numbers = "\n".join(map(str, range(100)))
    (data / "numbers.csv").write_text(f"x\n{numbers}\n")
    if fishweir:
        script = folder / "script.sql"
        script.write_text(SCRIPT.format(data=data / "numbers.csv", out=out))
        arguments = ["-m", "fishweir", "run", str(script), "--home", str(folder / "home"), "--until-idle"]
    else:
        arguments = ["-c", BARE, str(data), str(out)]
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not (out.exists() and out.stat().st_size) and process.poll() is None:
        if time.perf_counter() > began + PATIENCE:
            process.kill()
        time.sleep(0.005)
    seconds = time.perf_counter() - began
    _, said = process.communicate()
    if not out.exists() or "7" not in out.read_text():
        raise RuntimeError(f"a process ended without its result: {said.decode(errors='replace')[-500:]}")
    return seconds


def second_run(setting: Setting) -> float:
    """Seconds of `publish` and `run(until_idle=True)` in a process that has run before."""
    with home_folder() as home, Weir(home, setting.spark) as weir:
        weir.execute("create stream R (x int); create query q as select x from R where x > 3")
        weir.publish("R", [{"x": 5}])
        weir.run(until_idle=True)
        began = time.perf_counter()
        weir.publish("R", [{"x": 6}])
        weir.run(until_idle=True)
        seconds = time.perf_counter() - began
        assert len(list(weir.results("q"))) == 2, "both runs have their result"
    return seconds


def targets(figures: list[Figure]) -> list[Target]:
    value = {(figure.measured, figure.contestant): figure.seconds for figure in figures}
    found = []
    for (measured, who), seconds in value.items():
        if measured.endswith("processor time"):
            found.append(Target(f"{measured}: under 0.5 s", f"{seconds:.2f} s", seconds < 0.5))
        elif "second run" in measured:
            found.append(Target(f"{measured}: under 1 s", f"{seconds:.2f} s", seconds < 1))
        elif who == "Fishweir":
            ratio = seconds / value[measured, "bare Spark"]
            found.append(Target(f"{measured}: at most 1.3 times that of bare Spark", f"{ratio:.2f}", ratio <= 1.3))
    return found


PART = Part("start", "Start", measure)
