"""The conjunctive query of a template as SQL (MMQJP 4.4, 5 and algorithm 3).

In: a template, and which relations hold the documents of its left and of its right side. Out: SQL that Spark and
DuckDB both take. Its body has, as in the paper, RT; for each value join a copy of Rdoc on either side, compared by
value; for each structural edge a copy of Rbin. With materialized views an edge whose lower end has an equality is a
copy of RL or RR instead, which has the value beside it (section 5); edges to nodes without one are not in these
views and stay copies of Rbin, which the paper passes over. A side that is a single node has Rbin's pair (x, x).
Beyond the paper: `!=` compares texts, `<` and the like compare numbers; a value that is none satisfies nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from fishweir.algebra.joins import JoinEdge
from fishweir.sharing.joins.mmqjp.templates import QueryTemplate, Reach


@dataclass(frozen=True, slots=True)
class SideTables:
    """The relations that one side is read from; `views` names RL or RR where it is materialized."""

    bin: str
    doc: str
    doc_ts: str
    views: str | None = None


STATE = SideTables("Rbin", "Rdoc", "RdocTS")
CURRENT = SideTables("RbinW", "RdocW", "RdocTSW")


def conjunctive_query(
    template: QueryTemplate, relation: str, left: SideTables, right: SideTables, variables: tuple[int, ...] = (),
    ends: tuple[float, ...] = (),
) -> str:  # fmt: skip
    """CQT: RoutT(qid, docid1, docid2, node1, ..., noden, wl). With `variables` it is of one query alone, without RT."""
    names = [str(v) for v in variables] or [f"t.var{i + 1}" for i in range(template.size)]
    body = _Body(template, (left, right), names)
    for side in (0, 1):
        body.structural_edges(side)
    for edge in template.value_joins:
        body.value_join(edge)
    own = [f"cast('{end}' as double)" for end in ends] if variables else [f"t.{end}" for end in template.ends]
    shown = [f"{body.node(i)} as node{i + 1}" for i in template.structure.marked]
    head = ["0 as qid" if variables else "t.qid", f"{body.document(0)} as docid1", f"{body.document(1)} as docid2",
            *shown, *(f"{value} as {end}" for value, end in zip(own, template.ends, strict=True))]  # fmt: skip
    distinct = "" if len(shown) == template.size else "distinct "
    tables = [*([] if variables else [f"{relation} t"]), *body.tables]
    where = f" where {' and '.join(body.conditions)}" if body.conditions else ""
    return f"select {distinct}{', '.join(head)} from {', '.join(tables)}{where}"


def within_window(query: str, reach: Reach, left: SideTables, right: SideTables, head: str = "r.*") -> str:
    """Algorithm 3: the rows of RoutT whose documents' times are within the window."""
    return (
        f"select {head} from ({query}) r, {left.doc_ts} a, {right.doc_ts} b"
        f" where a.docid = r.docid1 and b.docid = r.docid2 and r.docid1 <> r.docid2 and ({_times(reach)})"
    )


def counted(query: str) -> str:
    """How many results each query has."""
    return f"select qid, count(*) as results from ({query}) counted group by qid"


def _times(reach: Reach) -> str:
    ways = []
    if reach.left:
        ways.append("a.timestamp < b.timestamp and b.timestamp - a.timestamp <= r.wl")
    if reach.right:
        ways.append("b.timestamp < a.timestamp and a.timestamp - b.timestamp <= r.wr")
    if not reach.strict:
        ways.append("a.timestamp = b.timestamp")
    return " or ".join(f"({way})" for way in ways)


class _Body:
    """Tables and conditions of a query as they are put together."""

    def __init__(self, template: QueryTemplate, sides: tuple[SideTables, SideTables], names: list[str]) -> None:
        self.template, self.sides, self.names = template, sides, names
        self.tables: list[str] = []
        self.conditions: list[str] = []
        self._matched = {n for e in template.value_joins if e.is_equality for n in (e.left, e.right)}

    def node(self, node: int) -> str:
        """Where the id of a template's node stands: a root's is the upper end of its first edge."""
        if self.template.structure.parents[node] >= 0:
            return f"p{node + 1}.node2"
        return f"p{self.edges(node)[0][1] + 1}.node1"

    def edges(self, node: int) -> list[tuple[int, int]]:
        """The structural edges of a node's side."""
        return self.template.structural_edges(int(node >= self.template.structure.lefts))

    def document(self, side: int) -> str:
        return f"p{self.template.structural_edges(side)[0][1] + 1}.docid"

    def viewed(self, node: int) -> bool:
        """Whether the node's edge is in a materialized view, and its value with it."""
        return self.sides[int(node >= self.template.structure.lefts)].views is not None and node in self._matched

    def structural_edges(self, side: int) -> None:
        edges = self.template.structural_edges(side)
        for i, (above, below) in enumerate(edges):
            own, tables = f"p{below + 1}", self.sides[side]
            self.tables.append(f"{tables.views if self.viewed(below) else tables.bin} {own}")
            self.conditions += [f"{own}.var1 = {self.names[above]}", f"{own}.var2 = {self.names[below]}"]
            if i:
                self.conditions += [f"{own}.docid = {self.document(side)}", f"{own}.node1 = {self.node(above)}"]

    def value_join(self, edge: JoinEdge) -> None:
        number = len(self.tables)
        column = "strVal" if edge.op in ("=", "!=") else "numVal"
        ends = [self._value(node, side, number, column) for side, node in enumerate((edge.left, edge.right))]
        self.conditions.append(f"{ends[0]} {'<>' if edge.op == '!=' else edge.op} {ends[1]}")

    def _value(self, node: int, side: int, number: int, column: str) -> str:
        if column == "strVal" and self.viewed(node) and self._bound_below(node):
            return f"p{node + 1}.strVal"
        own = f"{'de'[side]}{number}"
        self.tables.append(f"{self.sides[side].doc} {own}")
        self.conditions += [f"{own}.docid = {self.document(side)}", f"{own}.node = {self.node(node)}"]
        return f"{own}.{column}"

    def _bound_below(self, node: int) -> bool:
        """Whether the node is the lower end of an edge: a root with children of its own is not."""
        return any(below == node for _, below in self.edges(node))
