"""Positions of published streams: as if each had its own, however they are saved."""

from __future__ import annotations

import random
from pathlib import Path

from fishweir.engine.positions import Positions


def test_shared_positions_equal_separate_ones(tmp_path: Path) -> None:
    r = random.Random(2)
    for _ in range(200):
        positions, separate = Positions(tmp_path / "positions.json"), dict[int, int]()
        newest = 0
        for _ in range(30):
            some = [id for id in separate if r.random() < 0.9]
            new = {max(separate, default=0) + 1 + i: r.randint(-1, newest) for i in range(r.randint(0, 2))}
            separate = {id: separate[id] for id in some} | new
            positions.update(separate, new)
            if not separate:
                continue
            assert positions.first() == min(separate.values())
            newest += r.randint(0, 2)
            for batch in range(positions.first() + 1, newest + 1):
                separate = {id: max(position, batch) for id, position in separate.items()}
                positions.advance(batch)
                assert {id: positions.of(id) for id in separate} == separate
            positions.save()
            saved = Positions(tmp_path / "positions.json").saved()
            assert {id: saved(id) for id in separate} == separate
            assert saved(max(separate) + 1) == -1


def test_positions_of_each_stream_are_read_too(tmp_path: Path) -> None:
    """Homes of earlier versions list every stream."""
    from fishweir.sealed import write_json

    write_json(tmp_path / "positions.json", {"positions": {"7": [3, 4], "9": [5]}})
    saved = Positions(tmp_path / "positions.json").saved()
    assert [saved(id) for id in (3, 4, 5, 6)] == [7, 7, 9, -1]
