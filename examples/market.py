"""Writes a small market: market/quotes.xml, and one more CSV file in market/orders with each run.

Run it repeatedly: each run changes some of the quotes, like a live page of quotes.

    python market.py [HOW_MANY_QUOTES_CHANGE]
"""

from __future__ import annotations

import random
import re
import sys
import time
from pathlib import Path

FOLDER = Path("market")
SYMBOLS = ["INTC", "MSFT", "AOL", "DELL", "MU", "ORCL", "SUNW", "CSCO", "AAPL", "IBM"]
QUOTE = "<Quote><Symbol>{}</Symbol><Current_Price>{}</Current_Price><Change_Ratio>{}</Change_Ratio></Quote>"


def main() -> None:
    pick = random.Random()
    changing = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    (FOLDER / "orders").mkdir(parents=True, exist_ok=True)
    write(FOLDER / "quotes.xml", quotes(pick, changing))
    write(FOLDER / "orders" / f"{time.time_ns()}.csv", orders(pick))


def quotes(pick: random.Random, changing: int) -> str:
    rows = read_quotes() or {symbol: (pick.randint(20, 180), 0.0) for symbol in SYMBOLS}
    for symbol in pick.sample(SYMBOLS, min(changing, len(SYMBOLS))):
        ratio = round(pick.uniform(-0.1, 0.1), 3)
        rows[symbol] = max(1, round(rows[symbol][0] * (1 + ratio))), ratio
    lines = "\n".join(QUOTE.format(symbol, *row) for symbol, row in rows.items())
    return f"<Quotes>\n{lines}\n</Quotes>\n"


def read_quotes() -> dict[str, tuple[int, float]]:
    """The current price and change of each symbol in the file."""
    path = FOLDER / "quotes.xml"
    pattern = QUOTE.format(r"(\w+)", r"(\d+)", r"([\d.e-]+)")
    found = re.findall(pattern, path.read_text() if path.exists() else "")
    return {symbol: (int(price), float(ratio)) for symbol, price, ratio in found}


def orders(pick: random.Random) -> str:
    rows = (f"c{pick.randint(1, 500)},{pick.choice(SYMBOLS)},{pick.randint(1, 1000)}\n" for _ in range(50))
    return "customer,symbol,shares\n" + "".join(rows)


def write(path: Path, text: str) -> None:
    """Writes under a temporary name first, so that readers see either the old file or the new one."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


if __name__ == "__main__":
    main()
