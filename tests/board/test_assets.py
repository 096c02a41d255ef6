"""The files of the page: others' are what they published, ours need no inline code, and all of them are small."""

from __future__ import annotations

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path

from aof.surfaces.board import app as board_app
from aof.surfaces.board.view import assets

BOARD = Path(board_app.__file__).parent
VENDOR = BOARD / "static/vendor"
TEMPLATES = sorted((BOARD / "templates").glob("*.html"))
VENDORED = json.loads((VENDOR / "vendored.json").read_text("utf-8"))
VERSIONS = {"htmx.org": "4.0.0", "sortablejs": "1.15.7", "uplot": "1.6.32", "@dagrejs/dagre": "3.1.1"}
MOST_BYTES = 150_000


def test_files_of_others_are_what_they_published() -> None:
    listed = {one["file"]: one["sha256"] for one in VENDORED}
    found = {
        path.name: sha256(path.read_bytes()).hexdigest() for path in VENDOR.iterdir() if path.suffix in (".js", ".css")
    }
    assert found == listed
    assert {one["package"]: one["version"] for one in VENDORED} == VERSIONS


def test_every_licence_is_there_in_full() -> None:
    texts = (VENDOR / "LICENSES.txt").read_text("utf-8")
    for one in VENDORED:
        assert f"{one['package']} {one['version']} ({one['licence']})" in texts
    assert texts.count("Permission") >= len(VERSIONS)


def test_all_that_a_page_loads_is_small() -> None:
    loaded = [one for one in BOARD.joinpath("static").rglob("*") if one.suffix in (".js", ".css", ".svg")]
    assert sum(len(gzip.compress(one.read_bytes(), 9)) for one in loaded) < MOST_BYTES


def test_no_template_has_code_or_styles_in_it() -> None:
    for path in TEMPLATES:
        text = path.read_text("utf-8")
        assert not re.findall(r"""\s(?:style|on[a-z]+)\s*=""", text), path.name
        assert not re.findall(r"<style|javascript:|hx-on|js:", text), path.name
        scripts = re.findall(r"<script(?P<tag>[^>]*)>(?P<body>.*?)</script>", text, re.DOTALL)
        assert all("src=" in tag or "application/json" in tag for tag, _body in scripts), path.name


def test_whatever_a_template_names_is_there() -> None:
    named = {name for path in TEMPLATES for name in re.findall(r"/board/static/([\w./-]+)", path.read_text("utf-8"))}
    assert named
    assert named <= set(assets())


def test_whatever_a_module_imports_is_there() -> None:
    for path in (BOARD / "static").glob("*.js"):
        for name in re.findall(r"""from "\./([\w.-]+)";""", path.read_text("utf-8")):
            assert name in assets(), f"{path.name} imports {name}"


def test_nothing_is_loaded_from_elsewhere() -> None:
    ours = [*TEMPLATES, *(BOARD / "static").glob("*.*")]
    for path in ours:
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.findall(r"https?://", text), path.name
