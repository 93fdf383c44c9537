"""MMQJP as published: one conjunctive query per template, over relations (sections 4 and 5).

In: join queries, then documents in batches. Out: the results of all queries. Shared: queries are rows of their
template's RT, so a batch costs one statement per template and not one per query; with views, the join of Rdoc and Rbin
is computed once for all templates. Three variants of views:

    none        algorithm 1
    recomputed  RL and RR are rematerialized for each batch, as in the paper's experiments (section 6.2)
    cached      algorithms 4 and 5: RL is assembled from the slices of a bounded view cache

This is the readable strategy, against which the fast one is checked. Conditions within one document other than
comparisons with constants, and windows by rows, are refused (join_graph.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from fishweir.papers.mmqjp.conjunctive import CURRENT, STATE, conjunctive_query
from fishweir.papers.mmqjp.relational import Engine, Found, RelationalJoin, Role
from fishweir.papers.mmqjp.relations import Relations
from fishweir.papers.mmqjp.view_cache import ViewCache, to_slices

Views = Literal["none", "recomputed", "cached"]

COMMON = "select distinct d.strVal from Rdoc d, RdocW e where d.strVal = e.strVal"
SLICES = (
    "select b.docid, b.var1, b.var2, b.node1, b.node2, d.strVal from {doc} d, {bin} b, {values} s"
    " where d.strVal = s.strVal and d.docid = b.docid and d.node = b.node2"
)
ALL_SLICES = (
    "select b.docid, b.var1, b.var2, b.node1, b.node2, d.strVal from {doc} d, {bin} b"
    " where d.strVal is not null and d.docid = b.docid and d.node = b.node2"
)


class Mmqjp(RelationalJoin):
    def __init__(
        self, engine: Engine, views: Views = "none", share_equal: bool = False, cache_rows: int = 1_000_000
    ) -> None:
        super().__init__(engine, share_equal)
        self.views, self.cache_rows, self.cache = views, cache_rows, ViewCache(cache_rows)
        self._slices: dict[str, pa.Table] = {}

    def evaluate(self, batch: Relations, head: Callable[[str], str]) -> Iterator[Found]:
        """Lines 2 and 3 of algorithm 1, 2 to 10 of algorithm 4."""
        if self.views != "none":
            with self.timed("views"):
                self._materialize(batch)
        for relation in self.templates.relations.values():
            for role in self.roles(batch, relation.template.reach):
                role = self._with_views(role)
                query = conjunctive_query(relation.template, relation.name, role.left, role.right)
                yield self.answer(query, relation.template, role, head)

    def _with_views(self, role: Role) -> Role:
        if self.views == "none":
            return role
        if role == Role(CURRENT, CURRENT):
            return Role(replace(CURRENT, views="RW"), replace(CURRENT, views="RW"))
        names = {STATE: "RL", CURRENT: "RR"}
        return Role(*(replace(side, views=names[side]) for side in (role.left, role.right)))

    def _materialize(self, batch: Relations) -> None:
        """Materializes STR, RL of the retained documents, RR of the new ones, and RW of all new ones if they can
        join."""
        engine = self.engine
        engine.materialize("STR", COMMON)
        if self.views == "cached":
            engine.create("RL", self._from_cache())
        else:
            engine.materialize("RL", SLICES.format(doc="Rdoc", bin="Rbin", values="STR"))
        engine.materialize("RR", SLICES.format(doc="RdocW", bin="RbinW", values="STR"))
        if len(batch.doc_ts) > 1:
            engine.materialize("RW", ALL_SLICES.format(doc="RdocW", bin="RbinW"))

    def _from_cache(self) -> pa.Table:
        """Lines 3 to 7 of algorithm 4. Missing slices are computed together."""
        wanted = self.engine.run("select strVal from STR")["strVal"].to_pylist()
        self._slices = {value: found for value in wanted if (found := self.cache.get(value)) is not None}
        missed = [value for value in wanted if value not in self._slices]
        self.engine.create("missed", pa.table({"strVal": pa.array(missed, pa.string())}))
        computed = self.engine.run(SLICES.format(doc="Rdoc", bin="Rbin", values="missed"))
        self._slices |= to_slices(computed)
        return pa.concat_tables([computed.schema.empty_table(), *self._slices.values()])

    def restore(self, state: Relations) -> None:
        super().restore(state)
        self.cache = ViewCache(self.cache_rows)

    def maintain(self, batch: Relations) -> None:
        if self.views == "cached":
            new = to_slices(self.engine.run("select * from RR"))
            self.cache.extend(self._slices, new)
        super().maintain(batch)
