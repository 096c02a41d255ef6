"""A screenshot as a small PNG: at most 256 colours, which is plenty for a page and a fraction of the bytes."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MOST_COLOURS = 256
Colour = tuple[int, int, int]


def reduced(png: bytes) -> bytes:
    """The same picture with a palette. Takes what the browser makes: 8 bits, RGB or RGBA, not interlaced."""
    width, height, channels, rows = _decoded(png)
    pixels = [[(row[at], row[at + 1], row[at + 2]) for at in range(0, width * channels, channels)] for row in rows]
    counted = Counter(pixel for row in pixels for pixel in row)
    colours = [colour for colour, _ in counted.most_common(_MOST_COLOURS)]
    place = {colour: colours.index(_nearest(colour, colours)) for colour in counted}
    lines = b"".join(b"\0" + bytes(place[pixel] for pixel in row) for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"PLTE", b"".join(map(bytes, colours))),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _nearest(colour: Colour, colours: list[Colour]) -> Colour:
    return min(colours, key=lambda one: sum((a - b) ** 2 for a, b in zip(one, colour, strict=True)))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _decoded(png: bytes) -> tuple[int, int, int, list[bytearray]]:
    assert png.startswith(_SIGNATURE)
    at, packed = len(_SIGNATURE), b""
    width = height = channels = 0
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        data = png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data)
            assert (depth, interlaced) == (8, 0)
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            packed += data
        at += 12 + size
    raw, stride = zlib.decompress(packed), width * channels
    rows, above = [], bytearray(stride)
    for number in range(height):
        start = number * (stride + 1)
        above = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), above, channels)
        rows.append(above)
    return width, height, channels, rows


def _unfiltered(kind: int, row: bytearray, above: bytearray, step: int) -> bytearray:
    """A row without its filter: nothing, left, above, the mean of both, or Paeth's choice."""
    if kind == 0:
        return row
    for place in range(len(row)):
        left = row[place - step] if place >= step else 0
        corner = above[place - step] if place >= step else 0
        up = above[place]
        guess = (left, up, (left + up) // 2, _paeth(left, up, corner))[kind - 1]
        row[place] = (row[place] + guess) & 0xFF
    return row


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    return min((left, up, corner), key=lambda one: abs(estimate - one))
