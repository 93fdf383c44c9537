"""Fixed costs for the engine tests of shedding, so that a test makes the same decisions on any machine."""

from __future__ import annotations

import pytest

from fishweir.pipeline import shed
from fishweir.pipeline.calibration import Constants

COSTS = Constants(
    walk=5e-4,
    document=1.5e-6,
    element=8e-8,
    skipped=4e-8,
    node=1.5e-7,
    opened=4e-5,
    passed=1e-7,
    again=5e-7,
    part=1.6e-6,
    step=1e-7,
    returned=1.2e-6,
)


@pytest.fixture(autouse=True)
def fixed_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shed, "calibrated", lambda: COSTS)
