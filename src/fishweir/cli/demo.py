"""`fishweir demo`: the main job on embedded Spark and SQLite, from nothing to results.

A quotes file that changes in place, a folder of CSV orders, and 10,000 queries over them, registered in bulk, evaluated
by one Spark job and delivered to a file.
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fishweir.cli.common import RunBar, opened, output

if TYPE_CHECKING:
    from fishweir.engine.weir import Weir

SYMBOLS = ["INTC", "MSFT", "AOL", "DELL", "MU", "ORCL", "SUNW", "CSCO", "AAPL", "IBM"]

SCRIPT = """\
-- A file that changes in place: its rows, their key.
create stream quotes from '{home}/quotes.xml' rows /Quotes/Quote key Symbol every 1 second;

-- A folder of CSV files: tuples.
create stream orders (customer string, symbol string, shares int) from '{home}/orders' format csv;

-- NiagaraCQ's query type 3: one stock below a price.
create intel_below_100
    where <Quotes><Quote><Symbol>"INTC"</> <Current_Price>$p</></> element_as $g </> in "quotes", $p < 100
    construct $g
    do append '{home}/mailbox.jsonl';

-- A range, with a constructed output.
create movers
    where <Quotes><Quote><Symbol>$s</> <Change_Ratio>$c</></></> in "quotes", $c > 0.05, $c < 0.5
    construct <mover by=$c>$s</mover>;

-- The same language over tuples: the stream's name is the element, columns are its children.
create large_orders
    where <orders><customer>$c</> <shares>$n</></> in "orders", $n >= 900
    construct <call>$c</call>;
"""

MANY = """create $name where <Quotes><Quote><Symbol>"$symbol"</> <Current_Price>$p</></> element_as $g </>
in "quotes", $p < $limit construct $g"""


def demo(
    home: Annotated[Path, typer.Option(help="Folder for the demo; recreated each time.")] = Path("demo-home"),
    people: Annotated[int, typer.Option(help="Number of people; each has one query.")] = 10_000,
) -> None:
    """Watch a changing file and a folder for 10,000 people, from registration to delivery."""
    from rich.syntax import Syntax

    if home.exists():
        shutil.rmtree(home)
    (home / "orders").mkdir(parents=True)
    pick = random.Random(7)
    write_quotes(home, pick)
    write_orders(home, pick)
    with opened(home, runs=True) as weir:
        heading("1. Streams and standing queries are statements")
        script = SCRIPT.format(home=home)
        output().print(Syntax(script, "sql", background_color="default"))
        weir.execute(script)
        heading(f"2. {people:,} more people, registered in bulk: queries are data")
        began = time.perf_counter()
        rows = ({"name": f"p{i}", "symbol": pick.choice(SYMBOLS), "limit": pick.randint(1, 200)} for i in range(people))
        weir.register_many(MANY, rows)
        output().print(f"registered in {time.perf_counter() - began:.1f} s")
        heading("3. One Spark job evaluates them all")
        run(weir)
        heading("4. The file changes; only the changes are evaluated")
        write_quotes(home, pick, changed=3)
        run(weir)
        show(weir, home)


def run(weir: Weir) -> None:
    bar = RunBar()
    with bar.bar:
        weir.run(until_idle=True, on_progress=bar)


def show(weir: Weir, home: Path) -> None:
    from rich.table import Table

    table = Table("query", "document", "output", title="Some results")
    for name in ("intel_below_100", "movers", "large_orders", "p0", "p1"):
        for result in list(weir.results(name))[-2:]:
            table.add_row(result.query, ", ".join(result.documents), str(result.output)[:90])
    output().print(table)
    heading("5. What is shared")
    output().print(weir.explain("p0"), markup=False)
    output().print(str(weir.status()), markup=False)
    heading("6. Delivered")
    mailbox = (home / "mailbox.jsonl").read_text().splitlines()
    output().print(f"{home}/mailbox.jsonl has {len(mailbox)} results, the last:", mailbox[-1], sep="\n", markup=False)


def heading(text: str) -> None:
    from rich.panel import Panel

    output().print(Panel(text, style="bold cyan", expand=False))


def write_quotes(home: Path, pick: random.Random, changed: int = len(SYMBOLS)) -> None:
    """Writes quotes.xml; a second call changes some of its rows."""
    path = home / "quotes.xml"
    rows = dict(line.split("\t") for line in (home / "rows.txt").read_text().splitlines()) if path.exists() else {}
    for symbol in ["INTC", *pick.sample(SYMBOLS[1:], changed - 1)]:
        price = pick.randint(20, 99) if symbol == "INTC" else pick.randint(20, 180)
        ratio = round(pick.uniform(-0.2, 0.2), 3)
        rows[symbol] = (
            f"<Quote><Symbol>{symbol}</Symbol><Current_Price>{price}</Current_Price>"
            f"<Change_Ratio>{ratio}</Change_Ratio></Quote>"
        )
    (home / "rows.txt").write_text("".join(f"{symbol}\t{row}\n" for symbol, row in rows.items()))
    temporary = path.with_suffix(".tmp")
    temporary.write_text("<Quotes>\n" + "\n".join(rows.values()) + "\n</Quotes>\n")
    temporary.replace(path)


def write_orders(home: Path, pick: random.Random) -> None:
    lines = [f"c{i},{pick.choice(SYMBOLS)},{pick.randint(1, 1000)}" for i in range(200)]
    (home / "orders" / "monday.csv").write_text("customer,symbol,shares\n" + "\n".join(lines) + "\n")
