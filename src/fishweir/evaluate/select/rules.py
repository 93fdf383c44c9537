"""The rules for groups over one document, in order; plan/rules.py explains them."""

from __future__ import annotations

from fishweir.evaluate.group import Strategy
from fishweir.evaluate.select.filter_kind import FactorizedFilters
from fishweir.evaluate.select.strategies import ByAnchor, ByRegions, ByTwigs

SELECTING: tuple[Strategy, ...] = (ByRegions(), ByTwigs(), ByAnchor(), FactorizedFilters())
