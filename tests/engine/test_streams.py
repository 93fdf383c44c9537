"""Streams of every kind through the running job, results compared with literal values."""

from __future__ import annotations

import os
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fishweir
from tests.engine.helpers import all_outputs, aside, outputs, quote, quotes, rows, wait_for, write_files


def test_files_globs_folders_and_splits(weir, tmp_path):
    write_files(
        tmp_path,
        {
            "one.xml": quotes(("A", 5), ("B", 20)),
            "glob/x1.xml": quote("C", 30),
            "glob/y1.xml": quote("D", 40),
            "folder/b.xml": quotes(("F", 60)),
            "folder/a.xml": quotes(("E", 50)),
            "folder/.hidden.xml": quotes(("H", 70)),
            "folder/half.xml.tmp": quotes(("T", 70)),
            "deep.xml": f"<Site><Day>{quotes(('G', 80))}</Day><Quotes><Quote><Price>9</Price></Quote></Quotes></Site>",
        },
    )
    for n, name in enumerate(("b", "a")):  # order of arrival is that of change, then of name
        os.utime(tmp_path / f"folder/{name}.xml", (1000 + n, 1000 + n))
    weir.execute(
        """
        create stream whole from 'one.xml';
        create stream absolute from 'one.xml' split on /Quotes/Quote;
        create stream relative from 'deep.xml' split on Day/Quotes/Quote;
        create stream anywhere from 'deep.xml' split on //Quote;
        create stream outer from 'deep.xml' split on /Quotes/Quote;
        create stream globbed from 'glob/x*.xml';
        create stream folder from 'folder' split on Quote;
        create wholes where <Quotes><Quote><Price>$p</></> element_as $q</> in "whole", $p > 10 construct $q;
        create above where <Quotes><Quote><Symbol>$s</></></> in "absolute" construct $s;
        create wrong where <Other><Quote><Symbol>$s</></></> in "relative" construct $s;
        create far where <Site><Day><Quotes><Quote><Symbol>$s</></></></></> in "relative" construct $s;
        create near where <Quotes><Quote><Symbol>$s</></></> in "relative" construct $s;
        create any where <Quote><Price>$p</></> in "anywhere" construct $p;
        create none where <Quote><Price>$p</></> in "outer" construct $p;
        create globs where <Quote><Symbol>$s</></> in "globbed" construct $s;
        create folders where <Quote><Symbol>$s</></> in "folder" construct $s;
        """
    )
    with pytest.raises(fishweir.QueryError, match="can never fire: patterns over absolute begin with <Quotes>"):
        weir.execute("create never where <Other><Quote><Symbol>$s</></></> in 'absolute' construct $s")
    weir.run(until_idle=True)
    assert [(d, b, o) for d, _, b, o in rows(weir, "wholes")] == [("whole-1", {"q": (4, "B20")}, quote("B", 20))]
    assert [(d, b, o) for d, _, b, o in rows(weir, "above")] == [
        ("absolute-1", {"s": (1, "A")}, "A"),
        ("absolute-2", {"s": (1, "B")}, "B"),
    ]
    assert outputs(weir, "far") == outputs(weir, "near") == [("relative-1", "G")]
    assert outputs(weir, "any") == [("anywhere-1", "80"), ("anywhere-2", "9")]
    assert outputs(weir, "wrong") == outputs(weir, "none") == []
    assert outputs(weir, "globs") == [("globbed-1", "C")]
    assert outputs(weir, "folders") == [("folder-1", "F"), ("folder-2", "E")]

    write_files(tmp_path, {"folder/c.xml": quotes(("I", 1), ("J", 2)), "glob/x2.xml": quote("K", 3)})
    weir.run(until_idle=True)
    assert outputs(weir, "folders")[2:] == [("folder-3", "I"), ("folder-4", "J")]
    assert outputs(weir, "globs") == [("globbed-1", "C"), ("globbed-2", "K")]
    assert outputs(weir, "above") == [("absolute-1", "A"), ("absolute-2", "B")]
    assert weir.status().set_aside == 0


def test_timestamps(weir, tmp_path):
    write_files(
        tmp_path,
        {
            "elements.xml": "<d><i><t>2024-01-01T00:00:00Z</t></i><i><t>2024-01-01T02:00:00.5+02:00</t></i>"
            "<i><t>Mon, 01 Jan 2024 00:00:10 GMT</t></i><i><t>Mon, 01 Jan 2024 01:00:10 +0100</t></i>"
            "<i><t> 17.25 </t></i><i><t>2024-01-01</t></i></d>",
            "attributes.xml": "<d><i t='7'/><i t='-1.5'/></d>",
            "nested.xml": "<d><i><a t='1'/><b t='2'/></i></d>",
            "rows.csv": "n,at\n1,2024-01-01T00:00:00Z\n2,2024-01-01 00:00:01\n",
            "words.csv": 'n,at\n1,"Mon, 01 Jan 2024 00:00:10 GMT"\n2,5\n',
            "doubles.csv": "n,at\n1,1.5\n2,3\n",
        },
    )
    weir.execute(
        """
        create stream E from 'elements.xml' split on i timestamp t;
        create stream A from 'attributes.xml' split on i timestamp @t;
        create stream N from 'nested.xml' split on i timestamp b/@t;
        create stream T (n int, at timestamp) from 'rows.csv' timestamp at;
        create stream W (n int, at string) from 'words.csv' timestamp at;
        create stream D (n int, at double) from 'doubles.csv' timestamp at;
        create stream P timestamp t;
        create stream R;
        create e where <i/> element_as $i in "E" construct <x/>;
        create a where <i t=$t/> in "A" construct $t;
        create n where <i/> in "N" construct <x/>;
        create t where <T><n>$n</><at>$at</></> in "T" construct $at;
        create w where <W><n>$n</></> in "W" construct $n;
        create d where <D><n>$n</><at>$at</></> in "D" construct $at;
        create p where <i/> in "P" construct <x/>;
        create r where <i/> in "R" construct <x/>;
        """
    )
    new_year = 1704067200.0
    assert weir.publish("P", ["<i><t>5</t></i>", "<i><t>6</t></i>"], timestamps=[9, None]) == ["P-1", "P-2"]
    before = time.time()
    assert weir.publish("R", ["<i/>", "<i/>"], ids=["first", None]) == ["first", "R-2"]
    after = time.time()
    assert weir.publish("R", "<i/>", timestamps=["2024-01-01"], ids=["dated"]) == ["dated"]
    weir.run(until_idle=True)
    assert [r[1] for r in rows(weir, "e")] == [
        new_year,
        new_year + 0.5,
        new_year + 10,
        new_year + 10,
        17.25,
        new_year,
    ]
    assert rows(weir, "a") == [("A-1", 7.0, {"t": ("0@t", "7")}, "7"), ("A-2", -1.5, {"t": ("0@t", "-1.5")}, "-1.5")]
    assert rows(weir, "n") == [("N-1", 2.0, {}, "<x/>")]
    assert [(r[1], r[3]) for r in rows(weir, "t")] == [
        (new_year, "2024-01-01T00:00:00+00:00"),
        (new_year + 1, "2024-01-01T00:00:01+00:00"),
    ]
    assert [r[:2] for r in rows(weir, "w")] == [("W-1", new_year + 10), ("W-2", 5.0)]
    assert [(r[1], r[3]) for r in rows(weir, "d")] == [(1.5, "1.5"), (3.0, "3")]
    assert [r[:2] for r in rows(weir, "p")] == [("P-1", 9.0), ("P-2", 6.0)]
    (first, at), (second, _), dated = [r[:2] for r in rows(weir, "r")]
    assert (first, second, dated) == ("first", "R-2", ("dated", new_year))
    assert before <= at <= after


TUPLES = "(name string, n int, x double, ok boolean, at timestamp)"


def test_tuples(weir, tmp_path):
    write_files(
        tmp_path,
        {
            "r.csv": "name,n,x,ok,at\nann,1,5.0,true,2024-01-01T00:00:00Z\n,2,,,\n10,3,0.5,0,\n9,4,1e3,false,\n",
            "r.jsonl": '{"name": "ann", "n": 1, "x": 5, "ok": true, "at": "2024-01-01T00:00:00Z"}\n'
            '{"n": 2, "x": null}\n{"name": "10", "n": 3, "x": 0.5, "ok": false}\n{"name": "9", "n": 4, "x": 1000}\n',
        },
    )
    columns = {
        "name": ["ann", None, "10", "9"],
        "n": [1, 2, 3, 4],
        "x": [5.0, None, 0.5, 1000.0],
        "ok": [True, None, False, False],
        "at": pa.array([1704067200_000, None, None, None], pa.timestamp("ms", "UTC")),
    }
    pq.write_table(pa.table(columns), tmp_path / "r.parquet")
    streams = {"C": "r.csv", "J": "r.jsonl", "Q": "r.parquet"}
    for s, file in streams.items():
        weir.execute(
            f"""
            create stream {s} {TUPLES} from '{file}';
            create {s}all where <{s}><n>$n</></> element_as $r in "{s}" construct $r;
            create {s}half where <{s}><x>$x</></> in "{s}", $x < 5.5 construct $x;
            create {s}five where <{s}><x>"5"</><n>$n</></> in "{s}" construct $n;
            create {s}true where <{s}><ok>"true"</><n>$n</></> in "{s}" construct $n;
            create {s}not where <{s}><name>$a</></> in "{s}", $a != "ann" construct $a;
            create {s}number where <{s}><name>$a</></> in "{s}", $a > 9 construct $a;
            create {s}word where <{s}><name>$a</></> in "{s}", $a > "9" construct $a;
            create {s}at where <{s}><at>$t</></> in "{s}" construct $t;
            create {s}big where <{s}><x>$x</><n>$n</></> in "{s}", $x > $n construct <v n=$n>$x</v>;
            """
        )
    weir.run(until_idle=True)
    for s in streams:
        ann = "<name>ann</name><n>1</n><x>5</x><ok>true</ok><at>2024-01-01T00:00:00+00:00</at>"
        found = outputs(weir, f"{s}all")
        assert found[0] == (f"{s}-1", f"<{s}>{ann}</{s}>")
        assert found[2] == (f"{s}-3", f"<{s}><name>10</name><n>3</n><x>0.5</x><ok>false</ok></{s}>")
        assert [r[2:] for r in rows(weir, f"{s}half")] == [({"x": (3, "5")}, "5"), ({"x": (3, "0.5")}, "0.5")]
        assert outputs(weir, f"{s}five") == outputs(weir, f"{s}true") == [(f"{s}-1", "1")]
        assert outputs(weir, f"{s}not") == [(f"{s}-3", "10"), (f"{s}-4", "9")]
        assert outputs(weir, f"{s}number") == [(f"{s}-3", "10")]
        assert outputs(weir, f"{s}word") == [(f"{s}-1", "ann")]
        assert outputs(weir, f"{s}at") == [(f"{s}-1", "2024-01-01T00:00:00+00:00")]
        assert outputs(weir, f"{s}big") == [(f"{s}-1", '<v n="1">5</v>'), (f"{s}-4", '<v n="4">1000</v>')]
    empty = "<{0}><n>2</n></{0}>"
    assert outputs(weir, "Jall")[1] == ("J-2", empty.format("J"))
    assert outputs(weir, "Qall")[1] == ("Q-2", empty.format("Q"))
    assert outputs(weir, "Call")[1] == ("C-2", empty.format("C"))


def test_pushed_tuples(weir):
    weir.execute(
        f"""
        create stream R {TUPLES};
        create r where <R><n>$n</><x>$x</></> in "R", $x >= 2 construct <v>$n</v>;
        """
    )
    weir.publish("R", [{"n": 1, "x": 1}, {"n": 2, "x": 2}], timestamps=[1.0, 2.0], ids=["a", "b"])
    weir.publish("R", pa.table({"x": [3.0], "n": [3]}))
    weir.run(until_idle=True)
    assert rows(weir, "r")[0] == ("b", 2.0, {"n": (1, "2")}, "<v>2</v>")
    assert outputs(weir, "r")[1:] == [("R-3", "<v>3</v>")]


def test_attached_dataframes(spark_weir, spark, tmp_path):
    weir = spark_weir
    write_files(tmp_path, {"in/1.json": '{"n": 1, "x": 2.5}\n{"n": 2}\n', "docs/1.txt": "<a>1</a>\n<a>2</a>\n<a>\n"})
    spark_docs = spark.readStream.text(str(tmp_path / "docs"))
    weir.attach("T", spark.readStream.schema("n long, x double").json(str(tmp_path / "in")))
    weir.attach("V", spark_docs)
    weir.attach("B", spark_docs.selectExpr("value as body", "concat('id', value) as id"))
    weir.attach("N", spark_docs.selectExpr("nullif(value, '<a>1</a>') as value", "length(value) as id"))
    weir.execute(
        """
        create t where <T><n>$n</></> element_as $r in "T" construct $r;
        create v where <a>$v</> in "V" construct $v;
        create b where <a>$v</> in "B" construct $v;
        create n where <a>$v</> in "N" construct $v;
        """
    )
    weir.run(until_idle=True)
    assert outputs(weir, "t") == [("T-1", "<T><n>1</n><x>2.5</x></T>"), ("T-2", "<T><n>2</n></T>")]
    assert outputs(weir, "v") == [("V-1", "1"), ("V-2", "2")]
    assert outputs(weir, "b") == [("id<a>1</a>", "1"), ("id<a>2</a>", "2")]
    assert outputs(weir, "n") == [("8", "2")]
    assert sorted(aside(weir)) == ["3", "8", "V-3", "id<a>"]
    write_files(tmp_path, {"in/2.json": '{"n": 3}\n', "docs/2.txt": "<a>4</a>\n"})
    weir.run(until_idle=True)
    weir.run(until_idle=True)
    assert outputs(weir, "t")[2:] == [("T-3", "<T><n>3</n></T>")]
    assert outputs(weir, "v")[2:] == [("V-4", "4")]
    assert len(outputs(weir, "b")) == 3


def test_attached_rate_source(spark_weir, spark):
    """Spark's rate source has a column `value` which is a number, so its rows are tuples."""
    weir = spark_weir
    weir.attach("rate", spark.readStream.format("rate").option("rowsPerSecond", 3).load())
    weir.execute('create r where <rate><value>$v</></> in "rate", $v < 3 construct $v')
    for rows_so_far in (3, 6):
        weir.start()
        wait_for(lambda enough=rows_so_far: weir.status().streams["rate"].evaluated >= enough)
        weir.stop()
    assert sorted(o for _, o in outputs(weir, "r")) == ["0", "1", "2"]


def test_changing_file(weir, tmp_path):
    file = tmp_path / "shop.xml"
    weir_rows = {"a": 1, "b": 2}

    def version(text: str | None = None, space: str = "") -> None:
        books = [f"<book><id>{k}</id>{space}<price>{v}</price></book>" for k, v in weir_rows.items()]
        file.write_text(text or f"<shop>{space}{space.join(books)}</shop>")
        weir.run(until_idle=True)

    file.write_text("<shop/>")
    weir.execute(
        """
        create stream shop from 'shop.xml' rows book key id every 0;
        create books where <shop><book><id>$i</><price>$p</></></> in "shop" construct <b id=$i>$p</b>;
        """
    )
    version()
    assert outputs(weir, "books") == [("shop-1", '<b id="a">1</b>'), ("shop-2", '<b id="b">2</b>')]
    version(space="\n  ")
    weir_rows["c"] = 3
    version()
    weir_rows["a"] = 10
    version()
    assert outputs(weir, "books")[2:] == [("shop-3", '<b id="c">3</b>'), ("shop-4", '<b id="a">10</b>')]
    version("<shop><book><id>z</id>")
    assert [e.document for e in weir.set_aside("shop")] == ["shop-5"]
    del weir_rows["b"]
    version()
    assert len(outputs(weir, "books")) == 4, "neither a broken version nor a delete is a result"
    weir_rows["b"] = 2
    version()
    assert outputs(weir, "books")[4:] == [("shop-7", '<b id="b">2</b>')]
    assert weir.status().set_aside == 1


def test_dtd_and_named_file(weir, tmp_path):
    write_files(tmp_path, {"just.xml": quotes(("N", 12))})
    weir.execute(
        """
        create stream one conforms to 'q.dtd';
        create stream other conforms to 'x.dtd';
        create both where <Quote><Symbol>$s</></> in "*" conforms to 'q.dtd' construct $s;
        create named where <Quotes><Quote><Symbol>$s</></></> in "just.xml" construct $s;
        """
    )
    weir.publish("one", [quote("A", 1)])
    weir.publish("other", [quote("X", 1)])
    weir.run(until_idle=True)
    weir.execute("create stream two conforms to 'q.dtd';")
    weir.publish("two", [quote("B", 1)])
    weir.run(until_idle=True)
    assert outputs(weir, "both") == [("one-1", "A"), ("two-1", "B")]
    assert outputs(weir, "named") == [("just.xml-1", "N")]


BOOK = "<book id='b1' lang='en'><author>Ann</author><author>Bob</author><title>A &amp; &lt;B&gt;</title></book>"


def test_bindings_and_outputs(weir):
    weir.execute(
        """
        create stream S;
        create several where <book><author>$a</><title>$t</></> in "S" construct <by who=$a>$t, "said" $a</by>;
        create attribute where <book id=$i lang="en"/> element_as $b in "S" construct <r ref=$i/>;
        create other where <book lang="de"/> in "S" construct <r/>;
        create nested where <book><title>$t</></> element_as $b in "S" construct <x a="1 < 2"><y>text <z/></y>$b</x>;
        """
    )
    weir.publish("S", [BOOK], timestamps=[3])
    weir.run(until_idle=True)
    title = "A &amp; &lt;B&gt;"
    assert rows(weir, "several") == [
        ("S-1", 3.0, {"a": (1, "Ann"), "t": (3, "A & <B>")}, f'<by who="Ann">{title}, saidAnn</by>'),
        ("S-1", 3.0, {"a": (2, "Bob"), "t": (3, "A & <B>")}, f'<by who="Bob">{title}, saidBob</by>'),
    ]
    assert rows(weir, "attribute") == [("S-1", 3.0, {"i": ("0@id", "b1")}, '<r ref="b1"/>')]
    assert rows(weir, "other") == []
    nested = '<x a="1 &lt; 2"><y>text <z/></y><book id="b1" lang="en"><author>Ann</author><author>Bob</author>'
    assert outputs(weir, "nested") == [("S-1", f"{nested}<title>{title}</title></book></x>")]


def test_equal_queries_names_and_repeated_statements(weir):
    same = 'where <a>$v</> in "S", $v > 1 construct $v'
    script = f"create stream S; {same}; create mine {same}; create yours {same}; {same.replace('1', '5')};"
    assert weir.execute(script) == ["q1", "mine", "yours", "q2"]
    assert weir.execute(script) == ["q1", "mine", "yours", "q2"]
    for text in (f"create mine {same.replace('1', '2')}", "create stream S (n int)"):
        with pytest.raises(fishweir.QueryError, match=r"(mine|S) already exists with a different definition"):
            weir.execute(f"create never {same}; {text}")
    weir.publish("S", ["<a>3</a>", "<a>1</a>"])
    weir.run(until_idle=True)
    assert all_outputs(weir) == [("mine", "S-1", "3"), ("q1", "S-1", "3"), ("yours", "S-1", "3")]
    assert weir.status().queries == 4


def test_results_as_arrow_and_spark(spark_weir):
    weir = spark_weir
    weir.execute('create stream S; create q where <a>$v</> in "S" construct <o>$v</o>')
    weir.publish("S", ["<a>3</a>"], timestamps=[2.5])
    weir.run(until_idle=True)
    bindings = {"v": {"document": "S-1", "node": "0", "value": "3"}}
    table = weir.results().to_arrow().to_pylist()
    row = {
        "query": "q",
        "documents": ["S-1"],
        "timestamp": 2.5,
        "bindings": list(bindings.items()),
        "output": "<o>3</o>",
    }
    assert table == [row]
    (spark_row,) = weir.results("q").to_spark().collect()
    assert spark_row.asDict(recursive=True) == {**row, "bindings": bindings}
