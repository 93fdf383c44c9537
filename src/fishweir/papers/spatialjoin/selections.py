"""The selections of Spatial Join CQ as strategies of the engine: `--strategy selections=sj-batch`.

Each takes every table with conditions on two or more attributes, whether that pays or not. The default strategies
evaluate the rest. The kernels (regions/) join a batch of bindings with the regions.
"""

from __future__ import annotations

from fishweir.evaluate.group import Strategy
from fishweir.evaluate.select.strategies import ByRegions
from fishweir.papers.spatialjoin.regions import NAMES

STRATEGIES: dict[str, Strategy] = {name: ByRegions(name, kernel=name, module=__name__) for name in NAMES}
