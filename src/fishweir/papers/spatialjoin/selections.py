"""The selections of Spatial Join CQ as strategies of the engine: `--strategy selections=sj-batch`.

Each takes every table with conditions on two attributes or more, whether that pays or not; the default strategies
evaluate the rest. How a batch of bindings is joined with the regions is the kernel's part (regions/).
"""

from __future__ import annotations

from fishweir.evaluate.group import Strategy
from fishweir.evaluate.select.strategies import ByRegions
from fishweir.papers.spatialjoin.regions import NAMES

STRATEGIES: dict[str, Strategy] = {name: ByRegions(name, kernel=name, module=__name__) for name in NAMES}
