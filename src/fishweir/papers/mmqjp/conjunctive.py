"""The conjunctive query of a template as SQL (MMQJP 4.4, 5 and algorithm 3).

In: a template, and the relations with the documents of its left and of its right side. Out: SQL that both Spark and
DuckDB accept. As in the paper, its body has RT; for each value join a copy of Rdoc on either side, compared by value;
and for each structural edge a copy of Rbin. With materialized views, an edge whose lower end has an equality is a copy
of RL or RR instead, which also contains the value (section 5). Edges to nodes without an equality are not in these
views and stay copies of Rbin, which the paper does not mention. A side that is a single node has Rbin's pair (x, x).
Beyond the paper: `!=` compares texts, `<` and similar operators compare numbers; a value that is not a number satisfies
no such comparison.

The tables are listed in an order in which they can be joined: two value joins first, which leave few pairs of
documents, then RT, which leaves few edges, then the rest. An optimizer that goes by the numbers of rows starts with RT,
and combines all queries with all documents before it compares the first value.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from fishweir.algebra.joins import Edge
from fishweir.papers.mmqjp.templates import QueryTemplate, Reach


@dataclass(frozen=True, slots=True)
class SideTables:
    """The relations of one side. `views` names RL or RR if it is materialized."""

    bin: str
    doc: str
    doc_ts: str
    views: str | None = None


STATE = SideTables("Rbin", "Rdoc", "RdocTS")
CURRENT = SideTables("RbinW", "RdocW", "RdocTSW")
FIRST = 2
"""Number of value joins before the queries: one leaves all documents with a frequent value, three bring many nodes of
one pair."""


def conjunctive_query(
    template: QueryTemplate,
    relation: str,
    left: SideTables,
    right: SideTables,
    variables: tuple[int, ...] = (),
    ends: tuple[float, ...] = (),
) -> str:
    """CQT: RoutT(qid, docid1, docid2, node1, ..., noden, wl). With `variables` it is the query of one query alone,
    without RT."""
    names = [str(v) for v in variables] or [f"t.var{i + 1}" for i in range(template.size)]
    body = _Body(template, (left, right), names)
    for edge in body.value_joins:
        body.value_join(edge)
    for side in (0, 1):
        body.structural_edges(side)
    own = [f"cast('{end}' as double)" for end in ends] if variables else [f"t.{end}" for end in template.ends]
    shown = [f"{body.node(i)} as node{i + 1}" for i in template.structure.marked]
    head = [
        "0 as qid" if variables else "t.qid",
        f"{body.document(0)} as docid1",
        f"{body.document(1)} as docid2",
        *shown,
        *(f"{value} as {end}" for value, end in zip(own, template.ends, strict=True)),
    ]
    distinct = "" if len(shown) == template.size else "distinct "
    tables = body.ordered([] if variables else [f"{relation} t"])
    where = f" where {' and '.join(body.conditions)}" if body.conditions else ""
    return f"select {distinct}{', '.join(head)} from {', '.join(tables)}{where}"


def within_window(query: str, reach: Reach, left: SideTables, right: SideTables, head: str = "r.*") -> str:
    """Algorithm 3: the rows of RoutT whose documents' times are within the window."""
    return (
        f"select {head} from ({query}) r, {left.doc_ts} a, {right.doc_ts} b"
        f" where a.docid = r.docid1 and b.docid = r.docid2 and r.docid1 <> r.docid2 and ({_times(reach)})"
    )


def counted(query: str) -> str:
    """The number of results of each query."""
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
    """Tables and conditions of a query under construction."""

    def __init__(self, template: QueryTemplate, sides: tuple[SideTables, SideTables], names: list[str]) -> None:
        self.template, self.sides, self.names = template, sides, names
        self.conditions: list[str] = []
        self.value_joins = sorted(template.value_joins, key=lambda edge: not edge.is_equality)
        self._matched = {n for e in self.value_joins if e.is_equality for n in (e.left, e.right)}
        self._bins: dict[int, str] = {}
        self._docs: list[list[str]] = []

    def ordered(self, queries: list[str]) -> list[str]:
        """All tables: two value joins, the queries, the rest."""
        joined = [
            [*docs, *(self._bins[node] for node in (edge.left, edge.right) if node in self._bins)]
            for edge, docs in zip(self.value_joins, self._docs, strict=True)
        ]
        tables = [*chain(*joined[:FIRST]), *queries, *chain(*joined[FIRST:]), *self._bins.values()]
        return list(dict.fromkeys(tables))

    def node(self, node: int) -> str:
        """The column with the id of a template's node. The id of a root is the upper end of its first edge."""
        if self.template.structure.parents[node] >= 0:
            return f"p{node + 1}.node2"
        return f"p{self.edges(node)[0][1] + 1}.node1"

    def edges(self, node: int) -> list[tuple[int, int]]:
        """The structural edges of a node's side."""
        return self.template.structural_edges(int(node >= self.template.structure.lefts))

    def document(self, side: int) -> str:
        """The column with the id of a side's document: in the edge of the first node whose value is compared."""
        edges = self.template.structural_edges(side)
        compared = [(edge.left, edge.right)[side] for edge in self.value_joins[:1]]
        first = next((below for _, below in edges if below in compared), edges[0][1])
        return f"p{first + 1}.docid"

    def viewed(self, node: int) -> bool:
        """Whether the node's edge, and with it the value, is in a materialized view."""
        return self.sides[int(node >= self.template.structure.lefts)].views is not None and node in self._matched

    def structural_edges(self, side: int) -> None:
        tables, document = self.sides[side], self.document(side)
        for above, below in self.template.structural_edges(side):
            own = f"p{below + 1}"
            self._bins[below] = f"{tables.views if self.viewed(below) else tables.bin} {own}"
            self.conditions += [f"{own}.var1 = {self.names[above]}", f"{own}.var2 = {self.names[below]}"]
            links = {f"{own}.docid": document, f"{own}.node1": self.node(above)}
            self.conditions += [f"{here} = {there}" for here, there in links.items() if here != there]

    def value_join(self, edge: Edge) -> None:
        column = "strVal" if edge.op in ("=", "!=") else "numVal"
        self._docs.append([])
        ends = [self._value(node, side, column) for side, node in enumerate((edge.left, edge.right))]
        self.conditions.append(f"{ends[0]} {'<>' if edge.op == '!=' else edge.op} {ends[1]}")

    def _value(self, node: int, side: int, column: str) -> str:
        if column == "strVal" and self.viewed(node) and self._bound_below(node):
            return f"p{node + 1}.strVal"
        own = f"{'de'[side]}{len(self._docs)}"
        self._docs[-1].append(f"{self.sides[side].doc} {own}")
        self.conditions += [f"{own}.docid = {self.document(side)}", f"{own}.node = {self.node(node)}"]
        return f"{own}.{column}"

    def _bound_below(self, node: int) -> bool:
        """Whether the node is the lower end of an edge. A root with children is not."""
        return any(below == node for _, below in self.edges(node))
