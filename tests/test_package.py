"""What the package says about itself, to package indexes and to those who install it."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import metadata, version

import aof
from aof.service.extras import DISTRIBUTION
from tests.support.repository import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").rglob("*.md")]
INSTALLED_BY_NAME = re.compile(r"pip install ['\"]?aof\b(?!-fabric)")


def test_the_distribution_has_its_own_name_and_the_version_of_the_package() -> None:
    assert DISTRIBUTION == "aof-fabric"
    assert version(DISTRIBUTION) == aof.__version__


def test_the_package_says_who_made_it_under_which_licence_and_what_it_is() -> None:
    about = metadata(DISTRIBUTION)
    assert about["License-Expression"] == "MIT"
    assert "Permission is hereby granted" in (ROOT / "LICENSE").read_text("utf-8")
    assert about["Author"] == "The AOF authors"
    assert about["Description-Content-Type"] == "text/markdown"
    assert about["Description"].startswith("# AOF\n")


def test_every_page_installs_it_by_its_own_name() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "bench").rglob("*.py"), *PAGES]
    assert [path for path in sources if INSTALLED_BY_NAME.search(path.read_text("utf-8"))] == []


def test_every_extra_that_a_hint_or_page_names_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {
        extra
        for path in [*(ROOT / "src").rglob("*.py"), *PAGES]
        for found in re.findall(r"aof-fabric\[([a-z0-9,]+)\]", path.read_text("utf-8"))
        for extra in found.split(",")
    }
    assert named <= extras.keys()
    assert {"a2a", "notify"} <= named
