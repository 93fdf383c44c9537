"""JSON with nested objects and arrays: as documents that all languages read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fishweir.intake.json_documents import json_document
from tests.intake.support import bodies, problems, stream, taken

ORDER = {"id": 7, "customer": {"name": "Ann", "tags": ["new", "vip"]}, "lines": [{"sku": "a", "n": 2.0}, {"sku": "b"}]}


def test_an_object_is_a_document() -> None:
    assert json_document(ORDER, "order").decode() == (
        "<order><id>7</id><customer><name>Ann</name><tags>new</tags><tags>vip</tags></customer>"
        "<lines><sku>a</sku><n>2</n></lines><lines><sku>b</sku></lines></order>"
    )
    odd = {"a b": None, "2": True, "m": [[1, 2], [], None], "c": "x\x01<", "e": {}}
    assert json_document(odd, "s").count(b"<item>") == 2
    with pytest.raises(ValueError, match="expected an object"):
        json_document([1], "s")
    deep: dict[str, object] = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="nested more than 200"):
        json_document(deep, "s")


def test_files(tmp_path: Path) -> None:
    lines = [json.dumps({"n": n}) for n in range(3)]
    files = {
        "lines.json": "\n".join([lines[0], "", "[1]", lines[1], "{broken"]),
        "array.json": json.dumps([{"n": 1}, 5, {"n": 2}], indent=2),
        "object.json": json.dumps(ORDER, indent=2),
        "one.json": lines[0],
        "bad.json": "no JSON",
    }
    found = {}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        found[name] = taken(tmp_path, stream(path=name, format="json"))
        (tmp_path / "home").rename(tmp_path / f"home-{name}")
    assert bodies(found["lines.json"]) == ["<S><n>0</n></S>", "<S><n>1</n></S>"]
    assert [p.partition("lines.json, ")[2][:6] for p in problems(found["lines.json"])] == ["line 3", "line 5"]
    assert (len(bodies(found["array.json"])), len(problems(found["array.json"]))) == (2, 1)
    assert len(bodies(found["object.json"])) == len(bodies(found["one.json"])) == 1
    assert "not JSON" in problems(found["bad.json"])[0]


def test_all_languages_read_json(weir) -> None:  # type: ignore[no-untyped-def]
    Path("orders.json").write_text(json.dumps(ORDER))
    weir.execute("""
        create stream filed from 'orders.json';
        create stream orders;
        create query s1 as select id, customer.name from orders where customer.name = 'Ann';
        create query s2 as select customer.name from filed where id > 5;
        create query x as orders//lines[sku = 'b'];
        create n where <orders><customer><name>$n</></></> in orders construct <r>$n</>;
        create feed r from orders as $o where $o[customer/tags = 'vip'];
    """)
    weir.publish("orders", [ORDER, "<orders><id>8</id></orders>"])
    weir.run(until_idle=True)
    found = {result.query: result.output for result in weir.results()}
    assert list(found["s1"].values()) == ["7", "Ann"]
    assert list(found["s2"].values()) == ["Ann"]
    assert found["x"] == "<lines><sku>b</sku></lines>"
    assert found["n"] == "<r>Ann</r>"
    assert "vip" in found["r"]
