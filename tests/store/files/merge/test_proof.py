"""Whatever is changed in any lane, header or merge is found, also where the path from root to tip does not lead."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.errors import AofError
from aof.store.files.log import chain
from aof.store.files.log.layout import Layout, segments
from aof.store.files.merge import prove_lanes
from aof.store.files.paths import Paths
from tests.support.sites import Site


@pytest.fixture
def merged(tmp_path: Path) -> Site:
    """Two clones' work in one merge lane, and a lane that goes on from there."""
    first = Site(tmp_path / "a")
    one = first.create("one")
    second = first.clone("b")
    first.fabric.edit(one, title="of a")
    first.create("made in a")
    second.clock.time += 10_000
    second.fabric.edit(one, title="of b")
    second.create("made in b")
    first.fetch(second)
    first.store.working_copy.merge(dry_run=False)
    first.create("after")
    return first


def _prove(site: Site) -> None:
    paths = Paths(str(site.root))
    prove_lanes(paths, Layout(paths, segments(paths)))


def _refused(site: Site) -> bool:
    try:
        _prove(site)
    except AofError:
        return True
    return False


def _line_changes(lines: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    for at, line in enumerate(lines):
        altered = line.replace(b'"tester"', b'"mallet"', 1).replace(b'"actor":"aof"', b'"actor":"mallet"', 1)
        if altered != line:
            yield f"line {at} altered", [*lines[:at], altered, *lines[at + 1 :]]
        if at < len(lines) - 1:  # a lane without its last commits is one that did not have them yet
            yield f"line {at} dropped", [*lines[:at], *lines[at + 1 :]]
            yield f"line {at} swapped", [*lines[:at], lines[at + 1], line, *lines[at + 2 :]]
        yield f"line {at} doubled", [*lines[: at + 1], line, *lines[at + 1 :]]


def _lies(header: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    after, merge = header["after"], header.get("merge")
    for name, value in (("offset", after["offset"] - 1), ("seq", after["seq"] + 1), ("hash", "ab" * 32), ("file", "x")):
        yield f"another {name}", header | {"after": after | {name: value}}
    yield "another lane", header | {"lane": "0" * 12}
    yield "a word more", header | {"more": True}
    if merge is not None:
        heads = merge["heads"]
        yield "another rule", header | {"merge": merge | {"rule": 7}}
        yield "a head less", header | {"merge": merge | {"heads": heads[1:]}}
        yield "heads in another order", header | {"merge": merge | {"heads": heads[::-1]}}
        for name, value in (("offset", heads[0]["offset"] - 1), ("hash", "cd" * 32), ("file", "2026-03-02.jsonl.x")):
            yield f"a head with another {name}", header | {"merge": merge | {"heads": [heads[0] | {name: value}]}}


def test_every_line_and_header_that_was_changed_is_found(merged: Site) -> None:
    _prove(merged)
    for name, data in merged.files().items():
        path, lines = merged.root / "events" / name, data.splitlines(keepends=True)
        changes = list(_line_changes(lines))
        if name.count(".") > 1:
            lies = _lies(json.loads(lines[0]))
            changes += [(what, [msgspec.json.encode(lie) + b"\n", *lines[1:]]) for what, lie in lies]
        for what, changed in changes:
            path.write_bytes(b"".join(changed))
            assert _refused(merged), f"{name}: {what}"
        path.write_bytes(data)
    _prove(merged)


def test_a_merge_lane_that_somebody_has_made_up_is_found_though_its_chain_holds(merged: Site) -> None:
    (name,) = [name for name in merged.lanes() if ".m" in name]
    path = merged.root / "events" / name
    header, *lines = path.read_bytes().splitlines(keepends=True)
    events = [chain.decode_event(line) for line in lines]
    previous, forged = json.loads(header)["after"]["hash"], [header]
    for event in events:
        line, previous = chain.seal(msgspec.structs.replace(event, actor="mallet"), previous)
        forged.append(line)
    for other in merged.lanes():  # what builds on it, for the made up one has another end
        if name in json.dumps(merged.header(other).get("after")):
            (merged.root / "events" / other).unlink()
    path.write_bytes(b"".join(forged))
    with pytest.raises(AofError, match="not what comes of merging"):
        _prove(merged)


def _verify_refuses(site: Site) -> bool:
    try:
        site.fabric.verify()
    except AofError as error:
        return error.code == "log_damaged"
    return False


@pytest.mark.parametrize("look", [lambda site: not site.fabric.doctor().ok, _verify_refuses])
def test_doctor_and_verify_look_beside_the_path_too(merged: Site, look: Callable[[Site], bool]) -> None:
    assert not look(merged)
    merged.store.close()
    (beside,) = [name for name in merged.lanes() if ".m" not in name and "made in b" in merged.files()[name].decode()]
    path = merged.root / "events" / beside
    path.write_bytes(path.read_bytes().replace(b"made in b", b"made in c"))
    merged.reopen()
    assert look(merged)
