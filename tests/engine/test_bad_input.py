"""Bad input is refused with a clear message or set aside with its reason; everything else continues."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

import fishweir
from fishweir.engine.weir import Weir
from fishweir.errors import QueryError, SourceError
from tests.engine.helpers import all_outputs, aside, outputs, write_files

LAUGHS = "<!DOCTYPE a [<!ENTITY l0 'lol'>{}]><a>&l9;</a>".format(
    "".join(f"<!ENTITY l{i} '{f'&l{i - 1};' * 10}'>" for i in range(1, 10))
)
SMALL_ENTITY = "<!DOCTYPE a [<!ENTITY e 'inner'>]><a>&e;</a>"
GOOD = "<a>good</a>"


def external(path) -> str:
    return f"<!DOCTYPE a [<!ENTITY x SYSTEM 'file://{path}'>]><a>&x;</a>"


def test_broken_documents_are_set_aside(weir, tmp_path):
    write_files(tmp_path, {"secret.txt": "TOP-SECRET", "secret.dtd": "<!ENTITY x 'TOP-SECRET'>"})
    bad = {
        "open": ("<a><b></a>", "not well-formed XML"),
        "empty": ("", "the document is empty"),
        "text": ("hello", "not well-formed XML"),
        "two": ("<a/><a/>", "not well-formed XML"),
        "latin": ("<a>caf\xe9</a>".encode("latin-1"), "not well-formed XML"),
        "lying": (b"<?xml version='1.0' encoding='UTF-16'?><a>x</a>", "not well-formed XML"),
        "unknown": (b"<?xml version='1.0' encoding='klingon'?><a>x</a>", "not well-formed XML"),
        "nul": (b"<a>x\0</a>", "not well-formed XML"),
        "laughs": (LAUGHS, "not well-formed XML"),
        "deep": ("<a>" * 5000 + "</a>" * 5000, "not well-formed XML"),
        "undefined": ("<a>&nbsp;</a>", "not well-formed XML"),
        "external": (external(tmp_path / "secret.txt"), "external entities are not loaded"),
        "surrogate": ("<a>\ud800</a>", "not Unicode"),
    }
    good = {
        "declared": "<?xml version='1.0' encoding='ISO-8859-1'?><a>caf\xe9</a>".encode("latin-1"),
        "utf16": "<?xml version='1.0' encoding='UTF-16'?><a>caf\xe9</a>".encode("utf-16"),
        "as text": "<?xml version='1.0' encoding='UTF-16'?><a>caf\xe9</a>",
        "bom": b"\xef\xbb\xbf<a>bom</a>",
        "entity": SMALL_ENTITY,
        "comment": "<?pi x?><!-- c --><a>g<!-- c -->ood</a>",
    }
    weir.execute('create stream S; create q where <a>$v</> in "S" construct <o>$v</o>')
    documents = {**{k: text for k, (text, _) in bad.items()}, **good}
    weir.publish("S", list(documents.values()), ids=list(documents))
    dtd = f"<!DOCTYPE a SYSTEM 'file://{tmp_path}/secret.dtd'><a>&x;</a>"
    parameter = f"<!DOCTYPE a [<!ENTITY % p SYSTEM 'file://{tmp_path}/secret.dtd'>%p;]><a>&x;</a>"
    weir.publish("S", [dtd, parameter], ids=["dtd", "parameter"])
    weir.run(until_idle=True)
    found = dict(outputs(weir, "q"))
    assert "SECRET" not in repr([r.to_dict() for r in weir.results()])
    assert found == {
        "declared": "<o>caf\xe9</o>",
        "utf16": "<o>caf\xe9</o>",
        "as text": "<o>caf\xe9</o>",
        "bom": "<o>bom</o>",
        "entity": "<o>inner</o>",
        "comment": "<o>g<!-- c -->ood</o>",
    }
    reasons = aside(weir, "S")
    for id, (_, reason) in bad.items():
        assert reason in reasons[id], id
    kept = {entry.document: entry.body for entry in weir.set_aside("S")}
    assert kept["latin"] == b"<a>caf\xe9</a>"
    assert kept["open"] == b"<a><b></a>"


def test_broken_files(weir, tmp_path):
    write_files(
        tmp_path,
        {
            "in/1.xml": "<d><a>1</a><a>2</a>",
            "in/2.xml": "",
            "in/3.xml": f"<d><a>{LAUGHS}",
            "in/4.xml": external(tmp_path / "secret.txt").replace("<a>", "<d><a>") + "</d>",
            "in/5.xml": b"\x89PNG\r\n\x1a\n\0\0",
            "in/6.xml": "<d><a>6</a></d>",
            "whole/1.xml": "",
            "whole/2.xml": "<a>",
            "whole/3.xml": GOOD,
            "secret.txt": "TOP-SECRET",
        },
    )
    weir.execute(
        """
        create stream D from 'in' split on a; create d where <a>$v</> in "D" construct $v;
        create stream W from 'whole'; create w where <a>$v</> in "W" construct $v;
        """
    )
    weir.run(until_idle=True)
    assert [o for _, o in outputs(weir, "d")] == ["1", "2", "6"]
    assert [o for _, o in outputs(weir, "w")] == ["good"]
    reasons = " ".join(aside(weir, "D").values())
    for i in range(1, 6):
        assert f"{tmp_path}/in/{i}.xml" in reasons
    assert "in/6.xml" not in reasons
    assert "after 2 documents" in reasons
    assert len(aside(weir, "W")) == 2
    assert "SECRET" not in repr([r.to_dict() for r in weir.results()])
    before = aside(weir)
    weir.run(until_idle=True)
    assert aside(weir) == before, "nothing is set aside twice"


def test_huge_text_node(weir, tmp_path):
    (tmp_path / "in").mkdir()
    with (tmp_path / "in/huge.xml").open("w") as file:
        file.write("<d><a>")
        for _ in range(200):
            file.write("x" * 1_000_000)
        file.write("</a></d>")
    write_files(tmp_path, {"in/small.xml": "<d><a>small</a></d>"})
    weir.execute(
        """
        create stream whole from 'in'; create w where <d><a>$v</></> in "whole" construct $v;
        create stream split from 'in' split on a; create s where <a>$v</> in "split" construct $v;
        create stream other; create o where <a>$v</> in "other" construct $v;
        """
    )
    weir.publish("other", [GOOD])
    weir.run(until_idle=True)
    assert [(q, o) for q, _, o in all_outputs(weir)] == [("o", "good"), ("s", "small"), ("w", "small")]
    assert len(aside(weir)) == 2
    assert "huge.xml: the document has 200,000,014 bytes, more than" in aside(weir, "whole")["whole-1"]
    assert "huge.xml" in " ".join(aside(weir, "split").values())


def test_bad_timestamps(weir, tmp_path):
    bad = ["", "soon", "nan", "1e999", "2024-13-01", "Mon, 01 Jan 2020 00:00:00 +99999999999999"]
    texts = [f"<a><t>{t}</t></a>" for t in [*bad, "5"]] + ["<a/>"]
    weir.execute(
        """
        create stream X timestamp t; create x where <a/> in "X" construct <x/>;
        create stream T (n int, t string) timestamp t; create t where <T><n>$n</></> in "T" construct $n;
        create stream D (n int, d double) timestamp d; create d where <D><n>$n</></> in "D" construct $n;
        """
    )
    weir.publish("X", texts)
    weir.publish("T", [{"n": i, "t": t} for i, t in enumerate([*bad, "5", None])])
    weir.publish("D", [{"n": 1, "d": None}, {"n": 2, "d": 5}])
    for wrong in ("soon", float("nan")):
        with pytest.raises(fishweir.QueryError, match=r"stream X: .* is not a timestamp"):
            weir.publish("X", ["<a/>"], timestamps=[wrong])
    weir.run(until_idle=True)
    assert [(r.query, r.documents, r.timestamp) for r in weir.results()] == [
        ("x", ["X-7"], 5.0),
        ("t", ["T-7"], 5.0),
        ("d", ["D-2"], 5.0),
    ]
    reasons = aside(weir)
    assert sorted(reasons) == ["D-1", *(f"{s}-{i}" for s in "TX" for i in (1, 2, 3, 4, 5, 6, 8))]
    assert reasons["X-2"] == "the timestamp at t is neither seconds, ISO 8601 nor RFC 822: 'soon'"
    assert reasons["X-8"] == "no timestamp at t"
    assert reasons["T-2"] == "no timestamp in column t: 'soon'"


def test_wrong_tuples(weir, tmp_path):
    write_files(
        tmp_path, {"r.csv": "n,x\n1,1.5\nmany,2\n3,\n4,5,6\n5,5\n", "r.jsonl": '{"n": 1}\n{"n": \n[1]\n{"n": 2}\n'}
    )
    weir.execute(
        """
        create stream C (n int, x double) from 'r.csv'; create c where <C><n>$n</></> in "C" construct $n;
        create stream J (n int) from 'r.jsonl'; create j where <J><n>$n</></> in "J" construct $n;
        create stream P (n int, ok boolean); create p where <P><n>$n</></> in "P" construct $n;
        """
    )
    weir.publish("P", [{"n": "x"}, {"n": 1.5}, {"n": 2**63}, {"n": 1, "ok": "maybe"}, {"m": 1}, {"n": "7"}, {}])
    with pytest.raises(fishweir.QueryError, match="stream P accepts tuples as dicts, not str"):
        weir.publish("P", ["<a/>"])
    with pytest.raises(fishweir.QueryError, match="stream P has no column m; it has n, ok"):
        weir.publish("P", pa.table({"m": [1]}))
    with pytest.raises(fishweir.QueryError, match="stream P: 1 items but 2 ids"):
        weir.publish("P", [{"n": 1}], ids=["a", "b"])
    weir.run(until_idle=True)
    assert all_outputs(weir) == [
        ("c", "C-1", "1"),
        ("c", "C-3", "3"),
        ("c", "C-5", "5"),
        ("j", "J-1", "1"),
        ("j", "J-4", "2"),
        ("p", "P-6", "7"),
    ]
    reasons = aside(weir)
    assert sorted(reasons) == ["C-2", "C-4", "J-2", "J-3", "P-1", "P-2", "P-3", "P-4", "P-5"]
    assert reasons["C-2"] == f"{tmp_path}/r.csv, line 3: column n: 'many' is not an int"
    assert reasons["P-4"] == "column ok: 'maybe' is not a boolean"
    assert reasons["P-5"] == "unknown column 'm' with value 1"
    assert next(e.body for e in weir.set_aside("J") if e.document == "J-3") == b"[1]"


ELEMENT = 'where <a>$v</> in "{}" construct $v'


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("create stream M from 'missing'", SourceError, r"stream M: .*/missing does not exist"),
        (
            f"create good {ELEMENT.format('T')}",
            fishweir.QueryError,
            "query good reads T, which is neither a stream nor",
        ),
        (f"create taken {ELEMENT.format('S')} do nothing", fishweir.QueryError, "unknown action 'nothing'"),
        (f"create more {ELEMENT.format('S')} do append", fishweir.QueryError, "query more .*append does not take"),
        ("create taken where <b>$v</> in 'S' construct $v", fishweir.QueryError, "query taken already exists"),
        (
            "create bad where <a>$v</b> in 'S' construct $v",
            fishweir.QuerySyntaxError,
            r"line 1, column .*'</a>'(.|\n)*\^",
        ),
        ("create bad where <a>$v</> in 'S' construct $w", fishweir.QueryError, r"no pattern binds \$w"),
        ("delete nobody", fishweir.QueryError, "there is no query nobody"),
        ("create stream S (n int)", fishweir.QueryError, "stream S already exists with a different definition"),
    ],
)
def test_refused_statements_change_nothing(weir, statement, error, message):
    weir.execute(f"create stream S; create taken {ELEMENT.format('S')};")
    version = weir.status().version
    with pytest.raises(error, match=message):
        weir.execute(f"create other {ELEMENT.format('S')}; {statement}")
    assert (weir.status().version, weir.catalog.names(), list(weir.status().streams)) == (version, ["taken"], ["S"])


def test_unknown_names(weir):
    weir.execute("create stream S")
    with pytest.raises(fishweir.QueryError, match="there is no stream T; existing streams: S"):
        weir.publish("T", ["<a/>"])
    for call in (weir.results, weir.status, weir.explain, weir.drop):
        with pytest.raises(fishweir.QueryError, match="there is no query q"):
            call("q")


def test_vanished_folder(weir, tmp_path, caplog):
    write_files(tmp_path, {"in/1.xml": "<a>1</a>"})
    weir.execute(
        f"create stream F from 'in'; create f {ELEMENT.format('F')}; create stream S; create s {ELEMENT.format('S')}"
    )
    weir.start()
    weir.wait_idle()
    shutil.rmtree(tmp_path / "in")
    weir.publish("S", [GOOD])
    weir.wait_idle()
    assert str(tmp_path / "in") in weir.status().streams["F"].trouble
    assert str(tmp_path / "in") in caplog.text
    write_files(tmp_path, {"in/2.xml": "<a>2</a>"})
    weir.wait_idle()
    assert weir.status().streams["F"].trouble is None
    weir.stop()
    assert all_outputs(weir) == [("f", "F-1", "1"), ("f", "F-2", "2"), ("s", "S-1", "good")]
    assert len([r for r in caplog.records if str(tmp_path / "in") in r.getMessage()]) == 1, "reported once"


def test_an_id_that_occurs_twice_is_well_formed(weir, tmp_path):
    twice = "<r><a xml:id='x'>1</a><a xml:id='x'>2</a></r>"
    declared = "<!DOCTYPE r SYSTEM 'no.dtd' [<!ATTLIST a i ID #IMPLIED>]><r><a i='x'/><a i='x'>3</a></r>"
    broken = twice.replace("</r>", "</s>")
    write_files(tmp_path, {"split.xml": twice})
    weir.execute("""
        create stream S;
        create stream Split from 'split.xml' split on //a;
        create query both as S//a[. > 1];
        create query parts as Split//a;
    """)
    weir.publish("S", [twice, declared, "<r><a xml:id='1 2'>4</a></r>", broken])
    weir.run(until_idle=True)
    assert [entry.document for entry in weir.set_aside()] == ["S-4"], "what is broken beside that is broken"
    assert (len(outputs(weir, "both")), len(outputs(weir, "parts"))) == (3, 2)


def test_a_source_that_cannot_be_read_is_refused_with_its_place(weir: Weir) -> None:
    with pytest.raises(SourceError, match=r"missing\.xml does not exist") as caught:
        weir.execute("create stream A;\ncreate stream M from 'missing.xml' format xml;")
    assert isinstance(caught.value, QueryError)
    assert (caught.value.line, caught.value.column) == (2, 22)
    with pytest.raises(QueryError, match="it contains white space"):
        weir.execute("register feed 'https://example.org/a b' as F")
