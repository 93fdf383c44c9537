"""Queries and documents of MMQJP's experiments (section 6).

A query's number k of value joins follows Zipf's law; its leaves are drawn uniformly, k of them on either side.
Two-level schema: N leaves below the root. Three-level schema: a root with four nodes below it that have four leaves
each; the intermediate nodes are bound too. The two documents have equal values at equal leaves. RSS: items with five
leaves and unlimited windows; real items of the same shape as the paper's if available, else generated ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from lxml import etree

from fishweir.algebra.documents import Document, xml_text
from fishweir.algebra.nodes import Block, Comparison, PatternNode, Shape, SideWindow, Slot, Source, Step
from fishweir.papers.experiment.data import data_folder
from fishweir.papers.mmqjp.relational import JoinQuery
from fishweir.papers.mmqjp.relations import Arrival

SOURCE = Source("S")
WINDOW = Slot(0, "number")
FOLLOWED_BY = (SideWindow(WINDOW), SideWindow())
LENGTH = (3600.0,)
BRANCHES = 4
LEAVES = ("item_url", "channel_url", "title", "timestamp", "description")
CHANNELS = 418

Place = tuple[str, ...]
"""The names from below the root down to a leaf."""


@dataclass(frozen=True)
class Work:
    """`first` is retained when the `second` arrives; `other` has different values, for the warm-up."""

    name: str
    queries: list[JoinQuery] = field(repr=False)
    first: Arrival
    second: Arrival
    other: Arrival


def two_level(count: int, leaves: int = 6, zipf: float = 0.8, seed: int = 1) -> Work:
    places: list[Place] = [(f"leaf{i}",) for i in range(leaves)]
    return _work("two-level", places, count, leaves, zipf, seed)


def three_level(count: int, joins: int = 4, zipf: float = 0.8, seed: int = 1) -> Work:
    places: list[Place] = [(f"mid{i}", f"leaf{i}{j}") for i in range(BRANCHES) for j in range(BRANCHES)]
    return _work("three-level", places, count, joins, zipf, seed)


def _work(name: str, places: Sequence[Place], count: int, most: int, zipf: float, seed: int) -> Work:
    first, second, other = (
        (SOURCE, Document(f"d{i}", float(i), _tree(places, prefix)))
        for i, prefix in ((1, "value"), (3, "value"), (2, "other"))
    )
    return Work(name, draw_queries(places, count, most, zipf, seed), first, second, other)


def two_level_stream(count: int, leaves: int = 6, values: int = 5_000, seed: int = 3) -> Items:
    """Documents of the two-level schema, a second apart. The values of all leaves are drawn uniformly from one
    domain."""
    drawn = np.random.default_rng(seed).integers(0, values, (count, leaves))
    arrivals = []
    for i, row in enumerate(drawn.tolist()):
        root = etree.Element("item")
        for leaf, value in enumerate(row):
            etree.SubElement(root, f"leaf{leaf}").text = f"value {value}"
        arrivals.append((SOURCE, Document(f"S-{i + 1}", float(i), root)))
    return Items(arrivals, f"{count:,} generated documents of {leaves} leaves, {values:,} values")


def _tree(places: Sequence[Place], prefix: str) -> etree._Element:
    root = etree.Element("item")
    for number, place in enumerate(places):
        element = root
        for step in place:
            below = element.find(step)
            element = etree.SubElement(element, step) if below is None else below
        element.text = f"{prefix}{number}"
    return root


def draw_queries(
    places: Sequence[Place], count: int, most: int, zipf: float, seed: int, window: tuple[float, ...] = LENGTH
) -> list[JoinQuery]:
    """Random queries as in section 6.1. Equal queries have one shape."""
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, most + 1) ** zipf
    sizes = rng.choice(np.arange(1, most + 1), size=count, p=weights / weights.sum())
    chosen = np.argsort(rng.random((2, count, len(places))), axis=2)
    shapes: dict[tuple[int, ...], Shape] = {}
    queries: list[JoinQuery] = []
    for i, size in enumerate(sizes.tolist()):
        lefts, rights = (chosen[side, i, :size].tolist() for side in (0, 1))
        pairs = sorted(zip(lefts, rights, strict=True))
        key = tuple(place for pair in pairs for place in pair)
        if key not in shapes:
            shapes[key] = _shape(places, pairs)
        queries.append((shapes[key], window))
    return queries


def _shape(places: Sequence[Place], pairs: Sequence[tuple[int, int]]) -> Shape:
    blocks = tuple(Block(SOURCE, _pattern(places, [pair[side] for pair in pairs], "lr"[side])) for side in (0, 1))
    on = tuple(Comparison(f"l{left}", "=", f"r{right}") for left, right in pairs)
    return Shape(blocks, on, (), (WINDOW,), FOLLOWED_BY, strict=True)


def _pattern(places: Sequence[Place], chosen: Sequence[int], side: str) -> PatternNode:
    """The root, the intermediate nodes and the chosen leaves, each with a variable."""

    def below(depth: int, some: Sequence[int]) -> tuple[PatternNode, ...]:
        nodes = []
        for step in dict.fromkeys(places[leaf][depth] for leaf in some):
            own = [leaf for leaf in some if places[leaf][depth] == step]
            if len(places[own[0]]) == depth + 1:
                nodes.append(PatternNode(Step(step), (f"{side}{own[0]}",)))
            else:
                nodes.append(PatternNode(Step(step), (f"{side}{step}",), below(depth + 1, own)))
        return tuple(nodes)

    return PatternNode(Step("item"), (f"{side}root",), below(0, chosen))


# The RSS stream.


@dataclass(frozen=True)
class Items:
    arrivals: list[Arrival] = field(repr=False)
    source: str


def rss_queries(count: int, zipf: float = 0.8, seed: int = 1) -> list[JoinQuery]:
    places: list[Place] = [(leaf,) for leaf in LEAVES]
    return draw_queries(places, count, len(LEAVES), zipf, seed, (float("inf"),))


def load_items(count: int, seed: int = 7) -> Items:
    """The first items of the 418 largest channels; generated items if there are no real ones."""
    folder = data_folder("rss_items_2025")
    if folder is None:
        return Items(_generated(count, seed), f"{count:,} generated items of {CHANNELS} channels")
    table = pq.read_table(folder / "items.parquet")
    counts = sorted(pc.value_counts(table["channel_url"]).to_pylist(), key=lambda c: (-c["counts"], c["values"]))
    top = [c["values"] for c in counts[:CHANNELS]]
    table = table.filter(pc.is_in(table["channel_url"], value_set=pa.array(top, pa.large_string())))
    some = f"the first {count:,} of" if count < len(table) else "all"
    words = f"real data of the same shape, rss_items_2025: {some} {len(table):,} items"
    rows = table.slice(0, count).to_pylist()
    return Items(
        [_item(i, row["ts"].timestamp(), {**row, "timestamp": row["ts"].isoformat()}) for i, row in enumerate(rows)],
        f"{words} of {CHANNELS} channels",
    )


def _generated(count: int, seed: int) -> list[Arrival]:
    """Generated items. Channels follow Zipf's law; one title or description in fifty repeats an earlier one, item_url
    hardly ever."""
    rng = np.random.default_rng(seed)
    channels, repeats = rng.zipf(1.3, count) % CHANNELS, rng.random((count, 2)) < 0.02
    earlier = (rng.random(count) * np.arange(count)).astype(int)
    arrivals = []
    for i in range(count):
        title, description = (int(earlier[i]) if repeats[i, j] else i for j in (0, 1))
        site = f"http://c{channels[i]}.example"
        row = {
            "item_url": f"{site}/{i}",
            "channel_url": f"{site}/feed",
            "title": f"title {title}",
            "timestamp": f"t{i // 3}",
            "description": f"words of {description}",
        }
        arrivals.append(_item(i, float(i // 3), row))
    return arrivals


def _item(number: int, time: float, row: Mapping[str, object]) -> Arrival:
    root = etree.Element("item")
    for leaf in LEAVES:
        etree.SubElement(root, leaf).text = xml_text(str(row[leaf] or ""))
    return SOURCE, Document(f"S-{number + 1}", time, root)
