"""What a power cut may leave: a recorded history of steps, and every state of the disk that is legal after it.

Names and data are kept apart, as a file system keeps them. A change of names (a file made, renamed, swapped, removed)
is whole or missing, and may be missing while a later one is there, unless its folder was synced after it. Data that was
not flushed is there, missing, or there in some of its sectors. What one change of names builds on comes before it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.disks import Step, SteppingDisk

SECTOR = 512
_FEW = 4
Slot = tuple[int, str]


class RecordingDisk(SteppingDisk):
    """Does everything, and remembers it; `acknowledge` notes what somebody was told at that moment."""

    def __init__(self, root: Path, *, swaps: bool = False) -> None:
        super().__init__(swaps=swaps)
        self.root = str(root)
        self.steps: list[Step] = []
        self.told: list[tuple[int, list[bytes]]] = []

    def step(self, step: Step, act: Callable[[], int]) -> int:
        """Take the step and note it, with paths below the root."""
        done = act()
        if step.name != "swap" or done:
            self.steps.append(step._replace(path=self._below(step.path), other=self._below(step.other)))
        return done

    def acknowledge(self, lines: list[bytes]) -> None:
        """These lines of the log were acknowledged by now."""
        self.told.append((len(self.steps), lines))

    def told_by(self, moment: int) -> list[bytes]:
        """The lines that were acknowledged before so many steps were over."""
        return next((lines for number, lines in reversed(self.told) if number <= moment), [])

    def _below(self, path: str) -> str:
        return os.path.relpath(path, self.root) if path else ""


class Node:
    """A file or a folder; for a file all contents that it had since it was last flushed, the flushed one first."""

    __slots__ = ("folder", "versions")

    def __init__(self, *, folder: bool) -> None:
        self.folder = folder
        self.versions = [b""]


class Change(NamedTuple):
    """A change of names: what each slot holds afterwards, and the earlier changes that it builds on."""

    slots: tuple[tuple[Slot, int | None], ...]
    needs: tuple[int, ...]


class Cut:
    """A power cut after some steps of a history."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.nodes = [Node(folder=True)]
        self.names: dict[Slot, int] = {}
        self.base: dict[Slot, int] = {}
        self.changes: list[Change] = []
        self.durable: set[int] = set()
        self._setter: dict[Slot, int] = {}
        for step in steps:
            self._take(step)

    # --- what happened

    def _take(self, step: Step) -> None:
        if step.name in {"append", "overwrite", "truncate", "write_new"}:
            self._write(step)
        elif step.name in {"flush", "sync_dir", "sync_all"}:
            self._sync(step)
        else:
            self._rename(step)

    def _write(self, step: Step) -> None:
        if step.name == "write_new" and self._slot(step.path) in self.names:  # a leftover is removed, not overwritten
            self._set((self._slot(step.path), None))
        versions = self.nodes[self._node(step.path)].versions
        old, at, data = versions[-1], step.number, step.data
        match step.name:
            case "append":
                versions.append(old + data)
            case "overwrite":
                versions.append(old[:at].ljust(at, b"\0") + data + old[at + len(data) :])
            case "truncate":
                versions.append(old[:at])
            case "write_new":
                versions += [b"", data]

    def _rename(self, step: Step) -> None:
        match step.name:
            case "make_dir" if step.path != ".":
                self._set((self._slot(step.path), self._new(folder=True)))
            case "create":
                self._node(step.path)
            case "unlink":
                self._node(step.path)  # not every file was made by a step: the index makes its own
                self._set((self._slot(step.path), None))
            case "rename":
                node, source, target = self._node(step.path), self._slot(step.path), self._slot(step.other)
                self._set((target, node), (source, None))
            case "swap":
                source, target = self._slot(step.path), self._slot(step.other)
                self._set((source, self.names[target]), (target, self.names[source]))

    def _sync(self, step: Step) -> None:
        match step.name:
            case "flush":
                node = self.nodes[self._node(step.path)]
                node.versions = node.versions[-1:]
            case "sync_dir":
                self._sync_folder(self._find(step.path))
            case "sync_all":
                self._sync_all()

    def _new(self, *, folder: bool) -> int:
        self.nodes.append(Node(folder=folder))
        return len(self.nodes) - 1

    def _find(self, path: str) -> int:
        node = 0
        for name in path.split("/"):
            node = self.names[node, name] if name != "." else node
        return node

    def _slot(self, path: str) -> Slot:
        folder, _, name = path.rpartition("/")
        return (self._find(folder) if folder else 0), name

    def _node(self, path: str) -> int:
        """The file at a path; made by this step where it is missing."""
        slot = self._slot(path)
        if slot not in self.names:
            self._set((slot, self._new(folder=False)))
        return self.names[slot]

    def _set(self, *slots: tuple[Slot, int | None]) -> None:
        needs = {self._setter[slot] for slot, _ in slots if slot in self._setter and slot in self.names}
        number = len(self.changes)
        self.changes.append(Change(slots, tuple(needs)))
        for slot, node in slots:
            self._setter[slot] = number
            if node is None:
                self.names.pop(slot, None)
            else:
                self.names[slot] = node

    def _sync_folder(self, folder: int) -> None:
        queue = [n for n, change in enumerate(self.changes) if any(slot[0] == folder for slot, _ in change.slots)]
        for number in queue:
            if number not in self.durable:
                self.durable.add(number)
                queue += self.changes[number].needs

    def _sync_all(self) -> None:
        self.base, self.changes, self.durable, self._setter = dict(self.names), [], set(), {}
        for node in self.nodes:
            node.versions = node.versions[-1:]

    # --- what may be left

    def open_changes(self) -> list[int]:
        """The changes of names that may be missing."""
        return [number for number in range(len(self.changes)) if number not in self.durable]

    def choices(self) -> Iterator[frozenset[int]]:
        """Which of those are there: every combination of a few; of many all beginnings, which is what journals keep."""
        pending = self.open_changes()
        if len(pending) <= _FEW:
            yield from map(frozenset, chain.from_iterable(combinations(pending, n) for n in range(len(pending) + 1)))
            return
        yield from (frozenset(pending[:end]) for end in range(len(pending) + 1))

    def left(self, root: Path, chosen: frozenset[int], data: Callable[[list[bytes]], bytes]) -> None:
        """Make the directory as it is found after the power cut."""
        names = dict(self.base)
        there: set[int] = set()
        for number, change in enumerate(self.changes):
            if number in self.durable or (number in chosen and there.issuperset(change.needs)):
                there.add(number)
                for slot, node in change.slots:
                    if node is None:
                        names.pop(slot, None)
                    else:
                        names[slot] = node
        inside: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), node in names.items():
            inside.setdefault(folder, []).append((name, node))
        self._make(root, 0, inside, data)

    def _make(
        self, path: Path, node: int, inside: dict[int, list[tuple[str, int]]], data: Callable[[list[bytes]], bytes]
    ) -> None:
        path.mkdir()
        for name, child in sorted(inside.get(node, [])):
            if self.nodes[child].folder:
                self._make(path / name, child, inside, data)
            else:
                (path / name).write_bytes(data(self.nodes[child].versions))


def nothing(versions: list[bytes]) -> bytes:
    """Nothing that was not flushed is there."""
    return versions[0]


def everything(versions: list[bytes]) -> bytes:
    """All of it is there, as it happens when the system writes in the background."""
    return versions[-1]


def emptied(versions: list[bytes]) -> bytes:
    """The size is there, and nothing of what was written: what a file system does that keeps sizes apart from data."""
    return versions[0][: len(versions[-1])].ljust(len(versions[-1]), b"\0")


def torn(random: Random) -> Callable[[list[bytes]], bytes]:
    """Each sector is as it was at some moment since the last flush, or was never written; the size likewise."""

    def data(versions: list[bytes]) -> bytes:
        if len(versions) == 1:
            return versions[0]
        sizes = {len(version) for version in versions}
        between = range(-(-min(sizes) // SECTOR) * SECTOR, max(sizes), SECTOR)
        size = random.choice(sorted(sizes.union(between)))
        found = b""
        for start in range(0, size, SECTOR):
            sectors = {version[start : start + SECTOR].ljust(SECTOR, b"\0") for version in versions}
            if start >= len(versions[0]):
                sectors.add(b"\0" * SECTOR)
            found += random.choice(sorted(sectors))
        return found[:size]

    return data
