"""Type 4, figure 5.7: joins changed quotes of an industry with companies.xml, all queries as one shared join.

The paper groups the selections first, writes a file for each industry, and has one join group for each file. Here the
queries are one join template with a table of constants: a quote's industry is looked up once and its symbol joined
once, whatever the number of queries. The companies do not change, so they are retained before the round arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fishweir.algebra.documents import Document, Element
from fishweir.algebra.nodes import Source
from fishweir.evaluate.join.join_tables import JoinTable
from fishweir.evaluate.join.pairing import PairBlock, find_pairs
from fishweir.evaluate.join.state import Run
from fishweir.evaluate.plan.segments import build_groups
from fishweir.papers.mmqjp.experiment.fast import Fast
from fishweir.papers.mmqjp.relations import Arrival
from fishweir.papers.niagaracq.quotes import COMPANY_CONTEXT, CONTEXT
from fishweir.papers.niagaracq.workloads import COMPANIES, STREAM, Counts, Workload


class GroupedJoin(Fast):
    name = "grouped"

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        tables: Any = [group for group in build_groups(workload.planned(), {}) if group.kind == JoinTable.kind]
        self.hold(tables, workload.size)
        (companies,) = workload.joined
        self.process(company_documents(companies.rows))

    def extract(self, rows: Sequence[Element]) -> Run:
        """The witnesses. The round is not retained, so that it can be repeated."""
        run = self.run_of(quote_documents(rows))
        self.documents -= len(rows)
        return run

    def match(self, run: Run) -> list[PairBlock]:
        return list(find_pairs(self.joins, run, self.runs))

    def counts(self, found: list[PairBlock]) -> Counts:
        """Counts results. Each company occurs once, so a result is a pair of query and quote."""
        members = [block.members for block in found]
        fired = len(np.unique(np.concatenate(members))) if members else 0
        return Counts(fired, sum(map(len, members)), sum(map(len, found)))

    def pairs(self, found: list[PairBlock]) -> set[tuple[int, int]]:
        result: set[tuple[int, int]] = set()
        for block in found:
            rows = np.repeat(self._quotes(block), np.diff(block.member_starts))
            result.update(zip(block.members.tolist(), rows.tolist(), strict=True))
        return result

    def _quotes(self, block: PairBlock) -> np.ndarray:
        """The quotes of a block, which are its left side. Their numbers follow those of the companies."""
        return (block.partners if block.by_right else block.numbers) - self.documents


def quote_documents(rows: Sequence[Element]) -> list[Arrival]:
    return [(Source(STREAM), Document(f"{STREAM}-{i}", 1.0, row, CONTEXT)) for i, row in enumerate(rows)]


def company_documents(rows: Sequence[Element]) -> list[Arrival]:
    return [(Source(COMPANIES), Document(f"{COMPANIES}-{i}", 0.0, row, COMPANY_CONTEXT)) for i, row in enumerate(rows)]
