"""A home with queries of every kind, enough of each for the strategies for many queries. Run it by name:

python -m tests.engine.every_kernel HOME            prints the kernels that had to be compiled
python -m tests.engine.every_kernel HOME record     adds the called kernels to evaluate/kernels.txt
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from fishweir import testing
from fishweir.evaluate.precompile import compiled_here, record

STREAMS = """
create stream R (a int, b int, c double, d double, s string);
create stream S (a int, b int, c double, d double, s string);
create stream T (a int, b int);
create stream books;
create stream news;
"""

QUERIES = """
create query j1 as select * from R [range 100 seconds], S [range 100 seconds] where R.a = S.a;
create query j2 as select R.s from R [range 100 seconds], S [range 50 seconds] where R.c < S.c and R.a = 3;
create query j3 as select R.s from R [rows 20], S [rows 20] where R.a = S.a and R.c <= S.d and S.b > 1;
create query j4 as select R.a from R [range 100 seconds], S [range 100 seconds], T [range 100 seconds]
    where R.a = S.a and S.b = T.b and R.c > 0.3;
create query like1 as select * from R where s like '%w1%' or s like 'w2_%';
create x1 where <lib><book><title>$t</> <price>$p</></></> in "books", $p < 50 construct <r>$t</r>;
create query b1 as books//book->b[./title->t][./author->a] FOLLOWED BY{t=u AND a=v, 1000}
    books//book->c[./title->u][./author->v];
create query b2 as books//book->b[./title->t] JOIN{t=u, 1000} news//item->c[./title->u];
create feed f1 from news as $n where $n[title contains 'w1' or contains 'w2'] and $n[title contains 'w3'];
create feed f2 from news as $n where $n[title similar 'w1 w2 w3'];
create feed f3 from news as $m join last 1 hour on books with $m[title = window.title];
create feed f4 from news as $m join last 1 hour on news with $m[title similar(0.3) window.title];
create feed f5 from news | books distinct on link, title within 1 hour;
"""


def run(home: Path) -> None:
    draw = random.Random(5)
    weir = testing.open(home)
    weir.execute(STREAMS)
    for statement in QUERIES.split(";\n"):
        if statement.strip():
            weir.execute(f"{statement};")
    ranges = [{"name": f"r{i}", **dict(zip("lmno", _bounds(draw), strict=True))} for i in range(3000)]
    box = "create query $name as select * from R where c > $l and c < $m and d > $n and a < 30 and d < $o"
    weir.register_many(box, ranges)
    words = [{"name": f"w{i}", "one": f"w{i % 40}", "two": f"w{i % 37}"} for i in range(600)]
    weir.register_many("create feed $name from news where [title contains '$one' or contains '$two']", words)
    weir.register_many(
        "create query $name as select * from R where a = $a and c > $c",
        ({"name": f"e{i}", "a": i % 50, "c": i / 1000} for i in range(600)),
    )
    weir.register_many(
        'create $name where <lib><book><title>"$t"</> <price>$p</></> element_as $b </> in "books", '
        "$p < $limit construct $b",
        ({"name": f"n{i}", "t": f"t{i % 9}", "limit": i} for i in range(300)),
    )
    for i in range(120):
        weir.execute(f"create query p{i} as books//book[./e{i}][.//price->p]//f{i % 7}->x;")
    for step in range(3):
        rows = [
            {
                "a": draw.randrange(40),
                "b": draw.randrange(9),
                "c": draw.random(),
                "d": draw.random(),
                "s": f"w{draw.randrange(30)}x",
            }
            for _ in range(80)
        ]
        times = [100.0 * step + i for i in range(80)]
        weir.publish("R", rows, timestamps=times)
        weir.publish("S", rows[::-1], timestamps=times)
        weir.publish("T", [{"a": i % 40, "b": i % 9} for i in range(80)], timestamps=times)
        weir.publish("books", [_book(draw, i) for i in range(60)], timestamps=times[:60])
        weir.publish("news", [_item(draw) for _ in range(60)], timestamps=times[:60])
        weir.run(until_idle=True)
    weir.results().to_arrow()
    weir.close()


def _bounds(draw: random.Random) -> list[float]:
    low, other = draw.random(), draw.random()
    return [round(low, 3), round(low + 0.2, 3), round(other, 3), round(other + 0.2, 3)]


def _book(draw: random.Random, i: int) -> str:
    authors = "".join(f"<author>a{draw.randrange(9)}</author>" for _ in range(1 + i % 3))
    inner = f"<e{i}><f{i % 7}>x</f{i % 7}></e{i}>"
    head = f"<title>t{draw.randrange(9)}</title>{authors}<price>{draw.randrange(99)}</price>"
    return f"<lib><book>{head}{inner}</book></lib>"


def _item(draw: random.Random) -> str:
    title = " ".join(f"w{draw.randrange(40)}" for _ in range(5))
    return f"<item><title>{title}</title><link>http://x.org/{draw.randrange(9)}</link></item>"


if __name__ == "__main__":
    run(Path(sys.argv[1]))
    if sys.argv[2:] == ["record"]:
        record()
    print("\n".join(compiled_here()))
