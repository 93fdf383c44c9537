"""NiagaraCQ's quotes.xml (figure 5.1) and companies.xml (figure 5.2) from real quotes, and rounds of changed rows.

In: the quotes of some days and the companies. Out: one day's quotes of 5,000 symbols, the same symbols' quotes of the
next day, of which a round takes some, and their companies, which do not change. The data has no opening prices, ranges
and profiles, so `Open`, `Day's_range`, `52_week_range` and `Company_profiles` are omitted; `PrevCls` is price minus
change.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
from lxml import etree

from fishweir.algebra.documents import Element, parse_document
from fishweir.algebra.values import to_text
from fishweir.papers.experiment.data import data_folder

FOLDER = "quotes_us_daily"
SYMBOLS = 5_000
CONTEXT, COMPANY_CONTEXT = ("Quotes",), ("Companies",)
"""The ancestors of a row before the file was split."""

DTD = """\
<!ELEMENT Quotes (Quote)*>
<!ELEMENT Quote (Symbol, Sector, Industry, Current_Price, PrevCls, Volume, Change_Ratio)>
<!ELEMENT Symbol (#PCDATA)>
<!ELEMENT Sector (#PCDATA)>
<!ELEMENT Industry (#PCDATA)>
<!ELEMENT Current_Price (#PCDATA)>
<!ELEMENT PrevCls (#PCDATA)>
<!ELEMENT Volume (#PCDATA)>
<!ELEMENT Change_Ratio (#PCDATA)>
"""

COMPANIES_DTD = """\
<!ELEMENT Companies (Company)*>
<!ELEMENT Company (Symbol, Name, Sector, Industry)>
<!ELEMENT Symbol (#PCDATA)>
<!ELEMENT Name (#PCDATA)>
<!ELEMENT Sector (#PCDATA)>
<!ELEMENT Industry (#PCDATA)>
"""


class Quote(NamedTuple):
    """One row. The fields are the elements in the DTD's order."""

    symbol: str
    sector: str
    industry: str
    price: float
    previous: float
    volume: int
    ratio: float


class Company(NamedTuple):
    """One row of companies.xml."""

    symbol: str
    name: str
    sector: str
    industry: str


TAGS = ("Symbol", "Sector", "Industry", "Current_Price", "PrevCls", "Volume", "Change_Ratio")
COMPANY_TAGS = ("Symbol", "Name", "Sector", "Industry")
Days = tuple[dict[str, Quote], dict[str, Quote]]


@dataclass(frozen=True)
class Market:
    """One day's quotes and the next day's, with symbols in the same random order.

    Each company occurs once. A quote may have none."""

    source: str
    today: tuple[Quote, ...]
    tomorrow: tuple[Quote, ...]
    companies: tuple[Company, ...]

    def changed(self, count: int) -> tuple[Quote, ...]:
        """A round: the next day's quotes of `count` symbols."""
        return self.tomorrow[:count]


def load_market(symbols: int = SYMBOLS, seed: int = 7) -> Market:
    """Loads real quotes if available, else generates them."""
    folder = data_folder(FOLDER)
    days, companies = _real_days(folder) if folder else _generated_days(symbols, seed)
    source = f"real quotes of {folder}" if folder else f"generated quotes (no {FOLDER} found)"
    today, tomorrow = days
    both = sorted(symbol for symbol in today.keys() & tomorrow.keys() if today[symbol] != tomorrow[symbol])
    chosen = np.random.default_rng(seed).permutation(len(both))[:symbols]
    names = [both[i] for i in chosen]
    listed = tuple(companies[s] for s in names if s in companies)
    return Market(source, tuple(today[s] for s in names), tuple(tomorrow[s] for s in names), listed)


def _real_days(folder: Path) -> tuple[Days, dict[str, Company]]:
    """The first two days of the data, and all companies."""
    table = pq.read_table(folder / "quotes_40days.parquet")
    days = pc.cast(table.column("snapshot"), "string")
    first, second = sorted(pc.unique(days).to_pylist())[:2]
    listed = csv.read_csv(folder / "companies.csv.gz").select(list(Company._fields)).to_pylist()
    companies = {row["symbol"]: Company(*(value or "" for value in row.values())) for row in listed}
    rows = [table.filter(pc.equal(days, day)).to_pylist() for day in (first, second)]
    return (_day(rows[0], companies), _day(rows[1], companies)), companies


def _day(rows: list[dict[str, Any]], companies: dict[str, Company]) -> dict[str, Quote]:
    unlisted = Company("", "", "", "")
    return {
        row["symbol"]: Quote(
            row["symbol"],
            *companies.get(row["symbol"], unlisted)[2:],
            row["price"],
            round(row["price"] - row["change"], 4),
            row["volume"],
            round(row["pct_change"] / 100, 7),
        )
        for row in rows
        if row["pct_change"] is not None and row["price"] > 0
    }


def _generated_days(symbols: int, seed: int) -> tuple[Days, dict[str, Company]]:
    """Log-normal prices and normal changes, like the paper's artificial ones."""
    draw = np.random.default_rng(seed)
    prices = np.round(draw.lognormal(2.7, 1.4, symbols) + 0.05, 2)
    days = _generated_day(prices, draw), _generated_day(prices, draw)
    return days, {name: Company(name, f"{name} Inc.", q.sector, q.industry) for name, q in days[0].items()}


def _generated_day(prices: Any, draw: np.random.Generator) -> dict[str, Quote]:
    ratios = np.round(draw.normal(0, 0.03, len(prices)), 7)
    volumes = draw.integers(1_000, 10_000_000, len(prices))
    names = [f"S{i:04d}" for i in range(len(prices))]
    return {
        name: Quote(
            name,
            f"Sector {i % 12}",
            f"Industry {i % 100}",
            round(float(price * (1 + ratio)), 4),
            float(price),
            int(volume),
            float(ratio),
        )
        for i, (name, price, ratio, volume) in enumerate(zip(names, prices, ratios, volumes, strict=True))
    }


def quote_body(quote: Quote) -> bytes:
    """One row as a separate document."""
    return etree.tostring(_element("Quote", TAGS, quote))


def quotes_document(quotes: tuple[Quote, ...]) -> bytes:
    """quotes.xml: the rows below one element, with the DTD."""
    return _document("Quotes", [_element("Quote", TAGS, quote) for quote in quotes], DTD)


def companies_document(companies: tuple[Company, ...]) -> bytes:
    """companies.xml."""
    rows = [_element("Company", COMPANY_TAGS, company) for company in companies]
    return _document("Companies", rows, COMPANIES_DTD)


def _document(tag: str, rows: list[Element], dtd: str) -> bytes:
    root = etree.Element(tag)
    root.extend(rows)
    kind = f"<!DOCTYPE {tag} [\n{dtd}]>"
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True, doctype=kind, pretty_print=True)


def parsed_rows(quotes: tuple[Quote, ...]) -> list[Element]:
    """The rows as the worker gets them, each parsed by itself."""
    return [parse_document(quote_body(quote)) for quote in quotes]


def parsed_companies(companies: tuple[Company, ...]) -> list[Element]:
    return [parse_document(etree.tostring(_element("Company", COMPANY_TAGS, company))) for company in companies]


def _element(tag: str, tags: tuple[str, ...], row: tuple[Any, ...]) -> Element:
    element = etree.Element(tag)
    for name, value in zip(tags, row, strict=True):
        etree.SubElement(element, name).text = value if isinstance(value, str) else to_text(value)
    return element
