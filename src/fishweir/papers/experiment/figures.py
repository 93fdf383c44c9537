"""Measured figures: their definition, their timing, and their output as CSV and JSON."""

from __future__ import annotations

import csv
import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from fishweir.papers.experiment.comparable import comparable

PACKAGES = ("fishweir", "pyspark", "pyarrow", "numpy", "lxml")


@dataclass(frozen=True)
class Figure:
    """One line of the result. `seconds` is None if it was not run, and `note` gives the reason."""

    experiment: str
    type: str
    case: str
    n: int
    contestant: str
    seconds: float | None
    c: int | None = None
    extract_seconds: float | None = None
    match_seconds: float | None = None
    fired: int | None = None
    pairs: int | None = None
    result_rows: int | None = None
    ratio: float | None = None
    ratio_match: float | None = None
    repetitions: int = 1
    peak_mb: float | None = None
    note: str = ""

    def point(self) -> tuple[str, float, float | None]:
        x = self.c if self.experiment == "changes" else self.n
        return f"{self.experiment}, {self.type}, {self.case}", x or 0, self.pairs


@dataclass(frozen=True)
class Target:
    """A target, the measured value, and whether the target was met; None if it was not measured."""

    name: str
    measured: str
    met: bool | None


@dataclass
class Outcome:
    """All measurements of a run. The figures have one class, which is Figure or the experiment's own."""

    about: dict[str, Any]
    figures: list[Any] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def find(self, **wanted: Any) -> list[Any]:
        return [f for f in self.figures if all(getattr(f, key) == value for key, value in wanted.items())]

    def write(self, out: Path, name: str) -> None:
        out.mkdir(parents=True, exist_ok=True)
        whole = {
            "about": self.about,
            "figures": _rows(self.figures),
            "targets": _rows(self.targets),
            "comparable": _rows(comparable(self.figures)),
        }
        (out / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")
        with (out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, [f.name for f in fields(self.figures[0] if self.figures else Figure)])
            writer.writeheader()
            writer.writerows(_rows(self.figures))


def _rows(items: Iterable[Any]) -> list[dict[str, Any]]:
    return [asdict(item) for item in items]


def about_run(data: str, quick: bool) -> dict[str, Any]:
    """The context of the figures: versions, machine, data."""
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "data": data,
        "quick": quick,
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "system": platform.platform(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
    }


def pin_threads() -> None:
    """Restricts libraries to one thread."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", ARROW_NUM_THREADS="1")
    pa.set_cpu_count(1)


@dataclass(frozen=True)
class Timed:
    """Median seconds of each stage, and the result of the last repetition."""

    extract: float
    match: float
    repetitions: int
    found: Any

    @property
    def seconds(self) -> float:
        return self.extract + self.match


def time_stages(
    extract: Callable[[Any], Any],
    match: Callable[[Any], Any],
    rows: Any,
    most: int = 101,
    budget: float = 3.0,
    clock: Callable[[], float] = time.perf_counter,
) -> Timed:
    """Repeats until `most` repetitions are done or the budget's seconds have passed; at least once."""
    gc.collect()
    gc.disable()
    try:
        stages: list[tuple[float, float]] = []
        began = clock()
        while not stages or (len(stages) < most and clock() - began < budget):
            start = clock()
            values = extract(rows)
            middle = clock()
            found = match(values)
            stages.append((middle - start, clock() - middle))
    finally:
        gc.enable()
    extracting, matching = (statistics.median(stage) for stage in zip(*stages, strict=True))
    return Timed(extracting, matching, len(stages), found)
