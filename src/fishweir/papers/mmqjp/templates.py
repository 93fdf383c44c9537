"""Query templates and their relations RT (MMQJP 4.1 to 4.3).

In: join queries one by one. Out: a template per class of isomorphic minors, and the relation RT of each: a row per
query with its id, the variable at each node of the template, and the window. Shared: all queries of a template are
evaluated by one conjunctive query, whatever their paths. Child and descendant axes do not distinguish templates: the
steps between two nodes of a minor are evaluated with the witnesses (stage 1), and only the ancestor relation remains.
Operators of value joins and the kind of window do distinguish templates. The two sides are not exchanged, because they
are read from different relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from fishweir.algebra.joins import Edge, JoinTemplate
from fishweir.algebra.nodes import Constant, Shape
from fishweir.papers.mmqjp.isomorphism import Structure, canonical
from fishweir.papers.mmqjp.join_graph import JoinGraph, Variable, to_join_graph, to_minor


@dataclass(frozen=True, slots=True)
class Reach:
    """The kind of windows: whether a left document waits for right ones, whether a right one waits for left ones, and
    whether documents of the same time do not join. FOLLOWED BY is Reach(True, False, True), JOIN Reach(True, True,
    False)."""

    left: bool
    right: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class QueryTemplate:
    """A minor without names. Nodes are numbers, called var1, var2, ... in figure 5, those of the left side first."""

    structure: Structure
    reach: Reach

    @property
    def size(self) -> int:
        return len(self.structure.parents)

    def nodes(self, side: int) -> range:
        lefts = self.structure.lefts
        return range(lefts) if side == 0 else range(lefts, self.size)

    def structural_edges(self, side: int) -> list[tuple[int, int]]:
        """(above, below) pairs. A side of one node has the edge from that node to itself, which binds it."""
        parents, nodes = self.structure.parents, self.nodes(side)
        return [(parents[node], node) for node in nodes if parents[node] >= 0] or [(nodes[0], nodes[0])]

    @property
    def value_joins(self) -> tuple[Edge, ...]:
        return tuple(Edge(0, left, op, 1, right) for left, op, right in self.structure.edges)

    @property
    def ends(self) -> tuple[str, ...]:
        """The window's columns of RT: `wl` for left documents that wait, `wr` for right ones."""
        return ("wl",) * self.reach.left + ("wr",) * self.reach.right


@dataclass
class TemplateRelation:
    """RT(qid, var1, ..., varn, wl) of one template, with `wr` besides `wl` if documents of both sides wait."""

    number: int
    template: QueryTemplate
    rows: list[tuple[int, tuple[int, ...], tuple[float, ...]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"RT{self.number}"

    def to_arrow(self) -> pa.Table:
        columns: dict[str, pa.Array] = {"qid": pa.array([qid for qid, _, _ in self.rows], pa.int64())}
        variables = np.array([row for _, row, _ in self.rows], np.int64).reshape(-1, self.template.size)
        columns |= {f"var{i + 1}": pa.array(variables[:, i], pa.int32()) for i in range(self.template.size)}
        for i, end in enumerate(self.template.ends):
            columns[end] = pa.array([ends[i] for _, _, ends in self.rows], pa.float64())
        return pa.table(columns)


class QueryTemplates:
    """All templates with their relations. Queries are assigned one by one."""

    def __init__(self) -> None:
        self.relations: dict[QueryTemplate, TemplateRelation] = {}
        self.variables: dict[Variable, int] = {}
        self.pairs: dict[tuple[int, int], None] = {}
        """(above, below): the pairs of variables that some structural edge needs in Rbin."""
        self.compared: dict[int, None] = {}
        """The variables whose values some value join reads."""

    def assign(self, qid: int, shape: Shape, constants: Sequence[Constant]) -> TemplateRelation:
        """Adds a query to the relation of its template, which may be new."""
        relation, variables, ends = self.place(shape, constants)
        relation.rows.append((qid, variables, ends))
        return relation

    def place(
        self, shape: Shape, constants: Sequence[Constant]
    ) -> tuple[TemplateRelation, tuple[int, ...], tuple[float, ...]]:
        """The relation of a query's template, and the query's row in it without the id."""
        slots = [window.end.index for window in shape.windows if window.end is not None]
        others = tuple(None if i in slots else constant for i, constant in enumerate(constants))
        template, definitions = _placed(shape, others)
        return self.place_minor(template, definitions, tuple(float(constants[slot]) for slot in slots))

    def place_minor(
        self, template: QueryTemplate, definitions: Sequence[Variable], ends: tuple[float, ...]
    ) -> tuple[TemplateRelation, tuple[int, ...], tuple[float, ...]]:
        """The same for a query whose template is known, with the variable at each of its nodes."""
        relation = self.relations.setdefault(template, TemplateRelation(len(self.relations) + 1, template))
        variables = tuple(self._number(definition) for definition in definitions)
        for side in (0, 1):
            self.pairs |= {(variables[a], variables[b]): None for a, b in template.structural_edges(side)}
        self.compared |= {variables[node]: None for e in template.value_joins for node in (e.left, e.right)}
        return relation, variables, ends

    def _number(self, variable: Variable) -> int:
        return self.variables.setdefault(variable, len(self.variables))

    def __len__(self) -> int:
        return len(self.relations)


@lru_cache(maxsize=200_000)
def _placed(shape: Shape, constants: tuple[Constant | None, ...]) -> tuple[QueryTemplate, tuple[Variable, ...]]:
    """The template of a query and the variable at each of its nodes, without the window's ends."""
    minor = to_minor(to_join_graph(shape, constants))  # type: ignore[arg-type]  # no condition reads a window's end
    template, order = to_template(minor, reach_of(shape))
    nodes = (*minor.left, *minor.right)
    return template, tuple(nodes[node].variable for node in order)


def to_template(minor: JoinGraph, reach: Reach) -> tuple[QueryTemplate, tuple[int, ...]]:
    """A minor's template, and the minor's node for each of the template's nodes, left nodes first."""
    structure, order = canonical(_structure(minor))
    return _template(structure, reach), order


def reach_of(shape: Shape | JoinTemplate) -> Reach:
    """Which sides of a join wait for the other."""
    left, right = (window.end is not None for window in shape.windows)
    return Reach(left, right, shape.strict)


def _structure(minor: JoinGraph) -> Structure:
    lefts = len(minor.left)
    parents = [node.parent for node in minor.left]
    parents += [node.parent + lefts if node.parent >= 0 else -1 for node in minor.right]
    edges = tuple((edge.left, edge.comparison, edge.right + lefts) for edge in minor.edges)
    marked = tuple(i for i, node in enumerate((*minor.left, *minor.right)) if node.is_shown)
    return Structure(tuple(parents), lefts, edges, marked)


@lru_cache(maxsize=100_000)
def _template(structure: Structure, reach: Reach) -> QueryTemplate:
    return QueryTemplate(structure, reach)


def up_to_exchange(template: QueryTemplate) -> Structure:
    """The template regardless of which side is which. Section 6.1 counts templates this way, table 3 does not."""
    structure = template.structure
    rights = template.size - structure.lefts

    def swapped(node: int) -> int:
        return node if node < 0 else node + rights if node < structure.lefts else node - structure.lefts

    parents = [swapped(structure.parents[n]) for n in (*template.nodes(1), *template.nodes(0))]
    edges = tuple((swapped(right), op, swapped(left)) for left, op, right in structure.edges)
    other = Structure(tuple(parents), rights, edges, tuple(sorted(map(swapped, structure.marked))))
    return min(structure, canonical(other)[0])
