"""Standing queries of 100,000 people about trades, from Python: registered, evaluated, delivered, dropped."""

import fishweir

SYMBOLS = ["INTC", "MSFT", "DELL", "ORCL", "IBM"]

with fishweir.open("people-home") as weir:
    weir.execute("""
        create stream trades (symbol string, price double, at timestamp) timestamp at;
        create stream news;
    """)

    # One statement, one query per row. The rows are dicts here; an Arrow table or a DataFrame works as well.
    people = ({"name": f"p{i}", "symbol": SYMBOLS[i % 5], "limit": 1 + i % 99} for i in range(100_000))
    count = weir.register_many(
        """create $name
               where <trades><symbol>"$symbol"</> <price>$p</></> element_as $t in "trades", $p < $limit
               construct $t""",
        people,
    )
    print(f"{count:,} queries")

    # A function as an action. It must be registered before a statement uses it.
    weir.action("shout", lambda result: print("!", result.query, result.output))
    weir.execute("""create rock where <item><title>$t</> <topic>"rock"</></> in "news" construct $t do shout""")

    weir.publish(
        "trades",
        [
            {"symbol": "INTC", "price": 97.5, "at": "2026-05-04T10:00:00Z"},
            {"symbol": "MSFT", "price": 420.0, "at": "2026-05-04T10:00:01Z"},
        ],
    )
    weir.publish("news", ["<item><title>Tea and stones</title><topic>rock</topic></item>"], ids=["n1"])
    weir.publish("news", ["<item><title>not closed</item>"])
    weir.run(until_idle=True)

    print(len(list(weir.results())), "results")
    for result in weir.results("p395"):
        print(result.query, result.documents, result.timestamp, result.output)
    for aside in weir.set_aside():
        print("set aside:", aside.document, aside.reason)
    print(weir.explain("p395"))

    # In the background, while the program continues.
    weir.start()
    weir.drop("p395")
    (document,) = weir.publish("trades", [{"symbol": "INTC", "price": 97.5, "at": "2026-05-04T10:01:00Z"}])
    weir.wait_idle()
    weir.stop()
    print(sum(1 for result in weir.results() if result.documents == (document,)), "results for", document)
    print(weir.status("p395"))
    print(weir.status())
