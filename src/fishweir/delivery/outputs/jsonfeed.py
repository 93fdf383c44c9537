"""`jsonfeed 'FILE'`: a JSON Feed 1.1 of the newest results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fishweir.delivery.outputs.entries import Entry
from fishweir.delivery.outputs.feed_file import FeedFile, link_of, moment


class JsonFeed(FeedFile):
    def read(self) -> list[Entry]:
        try:
            items = json.loads(self.path.read_text(encoding="utf-8"))["items"]
        except (ValueError, KeyError):
            return []
        return [
            Entry(i["id"], i.get("title", ""), i.get("url"), i["content_text"], i["_fishweir"]["timestamp"])
            for i in items
        ]

    def render(self, name: str, entries: Sequence[Entry], now: float) -> bytes:
        feed = {"version": "https://jsonfeed.org/version/1.1", "title": name, "items": [_item(e) for e in entries]}
        return json.dumps(feed, ensure_ascii=False, indent=1).encode()


def _item(entry: Entry) -> dict[str, Any]:
    item: dict[str, Any] = {"id": entry.id, "title": entry.title, "content_text": entry.summary}
    if (link := link_of(entry)) is not None:
        item["url"] = link
    return {**item, "date_published": moment(entry.timestamp).isoformat(), "_fishweir": {"timestamp": entry.timestamp}}
