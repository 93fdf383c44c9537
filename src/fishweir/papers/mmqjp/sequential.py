"""Sequential: evaluates each query alone, one after the other (the baseline of MMQJP section 6), in two variants.

`Sequential` evaluates a query on hash tables of the witnesses: the new document's bindings of one side, the retained
documents that have a value in common with it, their bindings of the other side, and all pairs of these compared.
`SequentialSql` sends the engine one statement per query: its template's conjunctive query with the query's own
variables and window in place of RT. Both have the same witnesses as MMQJP, so the only difference is that their queries
share nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from fishweir.algebra.values import COMPARE
from fishweir.papers.mmqjp.conjunctive import conjunctive_query
from fishweir.papers.mmqjp.relational import Counts, Found, RelationalJoin
from fishweir.papers.mmqjp.relations import Arrival, Relations
from fishweir.papers.mmqjp.templates import QueryTemplate

Row = tuple[int, ...]
"""The node for each template node of a side."""


class SequentialSql(RelationalJoin):
    def evaluate(self, batch: Relations, head: Callable[[str], str]) -> Iterator[Found]:
        for relation in self.templates.relations.values():
            roles = self.roles(batch, relation.template.reach)
            for qid, variables, ends in relation.rows:
                for role in roles:
                    query = conjunctive_query(relation.template, "", role.left, role.right, variables, ends)
                    found = self.answer(query, relation.template, role, head)
                    if len(found.rows):
                        own = pa.array([qid] * len(found.rows), pa.int64())
                        yield Found(found.template, found.rows.set_column(0, "qid", own))

    def load_templates(self) -> None:
        """Does nothing: RT is not needed."""
        self._changed.clear()


class NoEngine:
    """The engine of strategies that store the relations themselves."""

    def create(self, name: str, table: pa.Table) -> None: ...

    def append(self, name: str, table: pa.Table) -> None: ...

    def materialize(self, name: str, query: str) -> None: ...

    def run(self, query: str) -> pa.Table:
        raise TypeError("this strategy uses no engine")

    def drop(self, name: str) -> None: ...


class Sequential(RelationalJoin):
    """Rbin by pair of variables and document, values by document and node, documents by variable and value."""

    def __init__(self, share_equal: bool = False) -> None:
        super().__init__(NoEngine(), share_equal)
        self._clear()

    def _clear(self) -> None:
        self.bindings: dict[tuple[int, int], dict[int, list[tuple[int, int]]]] = {}
        self.values: dict[tuple[int, int], tuple[str, float | None]] = {}
        self.having: dict[tuple[int, str], dict[int, None]] = {}
        self.times: dict[int, float] = {}

    def restore(self, state: Relations) -> None:
        super().restore(state)
        self._clear()
        self.load(state)

    def count(self, arrivals: Sequence[Arrival], keep: bool = True) -> Counts:
        totals = np.zeros(len(self._rows), np.int64)
        for found in self.process(arrivals, keep):
            np.add.at(totals, found.rows["qid"].to_numpy(), 1)
        return totals[self.query_rows]

    def evaluate(self, batch: Relations, head: Callable[[str], str]) -> Iterator[Found]:
        """Evaluates document by document, so that those of a batch join each other too."""
        new = batch.doc_ts["docid"].to_pylist()
        for relation in self.templates.relations.values():
            rows = [row for query in relation.rows for row in self._alone(relation.template, *query, new)]
            names = ("qid", "docid1", "docid2", *(f"node{i + 1}" for i in relation.template.structure.marked))
            columns = zip(*rows, strict=True) if rows else [()] * len(names)
            yield Found(relation.template, pa.table([pa.array(c, pa.int64()) for c in columns], names))

    def load(self, batch: Relations) -> None:
        self.times |= dict(zip(*(batch.doc_ts[c].to_pylist() for c in ("docid", "timestamp")), strict=True))
        columns = (batch.doc[name].to_pylist() for name in ("docid", "node", "strVal", "numVal"))
        for document, node, text, number in zip(*columns, strict=True):
            if text is not None:
                self.values[document, node] = text, number
        for document, above, below, upper, lower in zip(*(c.to_pylist() for c in batch.bin.columns), strict=True):
            self.bindings.setdefault((above, below), {}).setdefault(document, []).append((upper, lower))
            for variable, node in ((above, upper), (below, lower)):
                if (document, node) in self.values:
                    self.having.setdefault((variable, self.values[document, node][0]), {})[document] = None

    def forget(self, batch: Relations) -> None:
        gone = set(batch.doc_ts["docid"].to_pylist())
        self.times = {document: time for document, time in self.times.items() if document not in gone}
        self.values = {key: value for key, value in self.values.items() if key[0] not in gone}
        for document in gone:
            for bound in self.bindings.values():
                bound.pop(document, None)
            for holders in self.having.values():
                holders.pop(document, None)

    def _alone(
        self, template: QueryTemplate, qid: int, variables: Row, ends: tuple[float, ...], new: Sequence[int]
    ) -> Iterator[tuple[int, ...]]:
        for document in new:
            for side in (0, 1):
                own = self._rows_of(template, variables, side, document)
                for other in self._candidates(template, variables, side, own, document) if own else ():
                    # the later of two new documents finds the earlier one
                    if other >= document or not self._within(template, ends, side, document, other):
                        continue
                    theirs = self._rows_of(template, variables, 1 - side, other)
                    pair = (document, other) if side == 0 else (other, document)
                    lefts, rights = (own, theirs) if side == 0 else (theirs, own)
                    both = ((*a, *b) for a in lefts for b in rights)
                    shown = (
                        tuple(row[i] for i in template.structure.marked)
                        for row in both
                        if self._holds(template, pair, row)
                    )
                    yield from ((qid, *pair, *nodes) for nodes in dict.fromkeys(shown))

    def _rows_of(self, template: QueryTemplate, variables: Row, side: int, document: int) -> list[Row]:
        """The bindings of a side's nodes that agree on their ancestors."""
        first, rows = template.nodes(side)[0], [()]  # type: tuple[int, list[Row]]
        for i, (above, below) in enumerate(template.structural_edges(side)):
            pairs = self.bindings.get((variables[above], variables[below]), {}).get(document, ())
            if i == 0:
                rows = [(upper, lower) if above != below else (lower,) for upper, lower in pairs]
            else:
                at = above - first
                rows = [(*row, lower) for row in rows for upper, lower in pairs if row[at] == upper]
        return rows

    def _candidates(
        self, template: QueryTemplate, variables: Row, side: int, own: Sequence[Row], document: int
    ) -> Sequence[int]:
        """The documents that share a value of the first equality with the new one; all documents if there is no
        equality."""
        first = template.nodes(side)[0]
        for edge in template.value_joins:
            if edge.is_equality:
                mine, other = (edge.left, edge.right) if side == 0 else (edge.right, edge.left)
                texts = {self.values[document, row[mine - first]][0] for row in own}
                return list(dict.fromkeys(d for t in texts for d in self.having.get((variables[other], t), ())))
        return list(self.times)

    def _within(self, template: QueryTemplate, ends: tuple[float, ...], side: int, document: int, other: int) -> bool:
        left, right = (document, other) if side == 0 else (other, document)
        apart = self.times[right] - self.times[left]
        if apart == 0:
            return not template.reach.strict
        reach = dict(zip(template.ends, ends, strict=True))
        return abs(apart) <= reach.get("wl" if apart > 0 else "wr", -1.0)

    def _holds(self, template: QueryTemplate, pair: tuple[int, int], row: Row) -> bool:
        for edge in template.value_joins:
            left, right = self.values[pair[0], row[edge.left]], self.values[pair[1], row[edge.right]]
            place = 0 if edge.op in ("=", "!=") else 1
            a, b = left[place], right[place]
            if a is None or b is None or not COMPARE[edge.comparison](a, b):
                return False
        return True
