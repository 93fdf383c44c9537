"""Measures the accuracy of the cost model: the shed queries of several queries, measured and predicted.

The queries and documents differ from those with which the constants were measured. The job measures the costs of
matching a document and constructing its outputs, and gets the saved shares of the two from the model. A prediction is
therefore the measured cost of the original query times these shares. The prediction of the model alone, in seconds, is
also given.
"""

from __future__ import annotations

from dataclasses import dataclass

from fishweir.papers.shedding.costs import PatternCounts, measured, shape_of
from fishweir.papers.shedding.transactions import Q1, Q2, sized, transactions

HELD_OUT = {
    "Q1": Q1,
    "flat": "for $a in stream('transactions')/list/transaction return $a/id, $a/name, $a/billing/cardNo",
    "deep": """for $a in stream('transactions')/list/transaction where $a/contact/tel != ''
        return $a//brand, $a//zip, $a/name""",
    "large": "for $a in stream('transactions')/list/transaction return $a/contact, $a/survey, $a/order",
    "nested": """for $a in stream('transactions')/list/transaction where $a/survey/brand != ''
        return <o>{$a/name, for $b in $a/contact/addr return <p>{$b/zip, $b/city}</p>, $a/order/items/brand}</o>""",
    "two conditions": """for $a in stream('transactions')/list/transaction where $a/order/price > 100 and $a/id >= 0
        return $a/contact/addr/city, $a/survey/comments, $a/order/items""",
}
SIZES = ((80, 60, 40, 20), (150, 20, 20, 10))


@dataclass(frozen=True)
class Prediction:
    """A shed query by its query and its number of patterns: its measured cost per document, the prediction by the model
    from the cost of the original query, and the prediction by the model alone."""

    query: str
    patterns: int
    measured: float
    predicted: float
    alone: float


def predictions(sample: int) -> list[Prediction]:
    """All shed queries of all queries. For transactions, other documents are counted than measured."""
    found = []
    for name, text in HELD_OUT.items():
        found += _of(name, text, transactions(sample), transactions(20, seed=11))
    for sizes in SIZES:
        bodies = sized(sizes, sample)
        found += _of(f"Q2 of {sizes}", Q2, bodies, bodies[:20])
    return found


def _of(name: str, text: str, bodies: list[bytes], counted: list[bytes]) -> list[Prediction]:
    """The predictions for one query. The original query comes first, and is not predicted from itself."""
    known, found = measured(text, bodies), PatternCounts(shape_of(text), counted)
    models = [query.predicted(found, len(bodies)) for query in known.queries]
    scales = [cost / model for cost, model in zip(known.costs[0], models[0], strict=True)]
    return [
        Prediction(name, len(query.kept), sum(cost), model[0] * scales[0] + model[1] * scales[1], sum(model))
        for query, cost, model in list(zip(known.queries, known.costs, models, strict=True))[1:]
    ]
