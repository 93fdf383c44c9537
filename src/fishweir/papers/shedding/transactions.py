"""Documents of the experiments: transactions by the schema of figure 1, and elements with patterns of given sizes.

A transaction has an id, a name, one contact with any number of tels, emails and addresses (zip, street, city, state),
one order with a price and items, a survey with brands and comments, and a billing with a card number. The paper does
not give their size. Its engine took 5.5 ms for one, so they were not small: `LARGE` ones have about 5 KB, small ones 1
KB.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

Q1 = """for $a in stream("transactions")/list/transaction where $a/order/price > 100
return $a//name, $a/contact/tel, $a/contact/email, $a/contact/addr, $a/order/items"""
FIGURE_7 = "v(name)=0.2, v(tel)=0.1, v(email)=0.1, v(addr)=0.05, v(price)=0.25, v(items)=0.2"
Q2 = "for $o in stream('sample')/o return $o/P1, $o/P2, $o/P3, $o/P4"
SMALL, LARGE, HUGE = 1, 5, 25
"""Number of repetitions of repeated elements."""
TOKENS = 200
"""Tokens of all patterns of an element of section 7.2."""


def transactions(count: int, seed: int = 3, times: int = SMALL) -> list[bytes]:
    draw = random.Random(seed)
    return [f"<list>{_transaction(number, draw, times)}</list>".encode() for number in range(count)]


def _transaction(number: int, draw: random.Random, times: int) -> str:
    def many(name: str, most: int, inner: str) -> str:
        return f"<{name}>{inner}</{name}>" * (times * draw.randint(1, most))

    street = "<St>12 Weir Lane</St><city>Worcester</city><state>MA</state>"
    contact = many("tel", 3, "508-555-0199") + many("email", 3, "someone@example.org")
    contact += many("addr", 6, f"<zip>01609</zip>{street}")
    items = many("brand", 10, "rod and reel")
    survey = many("brand", 6, "net") + many("comments", 6, "on time, well packed")
    return (
        f"<transaction><id>{number}</id><name>Customer {number}</name><contact>{contact}</contact>"
        f"<order><price>{draw.randint(101, 900)}</price><items>{items}</items></order>"
        f"<survey>{survey}</survey><billing><cardNo>4111</cardNo></billing></transaction>"
    )


def sized(sizes: Sequence[int], count: int) -> list[bytes]:
    """Elements of Q2 whose patterns have the given numbers of tokens. A start tag, a text and an end tag are three."""
    inner = "".join(f"<P{i}>{'<t>abc</t>' * max(1, (size - 2) // 3)}</P{i}>" for i, size in enumerate(sizes, 1))
    return [f"<o>{inner}</o>".encode()] * count
