"""Sequential: each query alone, one statement after the other (MMQJP section 6's baseline).

The statement of a query is its template's conjunctive query with the query's own variables and window in the place of
RT. State and witnesses are the same as MMQJP's, so that the two differ in what they share between queries only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from fishweir.sharing.joins.conjunctive import conjunctive_query
from fishweir.sharing.joins.relational import Found, RelationalJoin
from fishweir.sharing.joins.relations import Relations


class Sequential(RelationalJoin):
    """`only`: how many of the queries are evaluated, for who wants the time of a sample; all without it."""

    only: int | None = None

    def evaluate(self, batch: Relations, head: Callable[[str], str]) -> Iterator[Found]:
        for relation in self.templates.relations.values():
            roles = self.roles(batch, relation.template.reach)
            for qid, variables, ends in relation.rows:
                for role in roles if self.only is None or qid < self.only else ():
                    query = conjunctive_query(relation.template, "", role.left, role.right, variables, ends)
                    found = self.answer(query, relation.template, role, head)
                    if len(found.rows):
                        own = pa.array([qid] * len(found.rows), pa.int64())
                        yield Found(found.template, found.rows.set_column(0, "qid", own))

    def load_templates(self) -> None:
        """No relation RT is needed."""
        self._changed.clear()
