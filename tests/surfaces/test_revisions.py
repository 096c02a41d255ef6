"""Revisions over HTTP and on the command line: ETag and If-Match, exit code 4, and both versions in the answer."""

from __future__ import annotations

import json
import subprocess

import pytest

from aof.surfaces.http.responses import PREFIX
from tests.support.warm import warm
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import OverHttp, environment


def test_the_etag_of_a_task_is_its_revision_and_if_match_guards_a_write(http: OverHttp) -> None:
    task_id = http.elsewhere.create("Seen").task_id
    tag = http.client.get(f"{PREFIX}/show", params={"taskId": task_id}).headers["ETag"]
    assert tag == f'"{http.elsewhere.get(task_id).rev}"'
    changed = http.client.post(f"{PREFIX}/edit", json={"taskId": task_id, "title": "A"}, headers={"If-Match": tag})
    assert changed.status_code == 200
    refused = http.client.post(f"{PREFIX}/edit", json={"taskId": task_id, "title": "B"}, headers={"If-Match": tag})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (409, "revision_conflict")
    assert (error["details"]["expected"]["title"], error["details"]["current"]["title"]) == ("Seen", "A")
    anyway = http.client.post(f"{PREFIX}/edit", json={"taskId": task_id, "title": "B"}, headers={"If-Match": "*"})
    assert anyway.status_code == 200


@pytest.mark.parametrize("tag", ["new", "W/", '"1", "2"', "", '"-1"', "9" * 40])
def test_an_if_match_that_is_no_revision_is_refused(http: OverHttp, tag: str) -> None:
    task_id = http.elsewhere.create("Seen").task_id
    refused = http.client.post(f"{PREFIX}/cancel", json={"taskId": task_id}, headers={"If-Match": tag})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")
    assert http.elsewhere.get(task_id).status == "ready"


def test_a_header_and_a_parameter_that_disagree_are_refused(http: OverHttp) -> None:
    task_id = http.elsewhere.create("Seen").task_id
    body = {"taskId": task_id, "expectRev": 1}
    refused = http.client.post(f"{PREFIX}/cancel", json=body, headers={"If-Match": '"2"'})
    assert refused.status_code == 400


def test_the_command_line_exits_with_4_and_says_what_changed(doors: Doors) -> None:
    door = doors["cli"]
    task_id = door.elsewhere.create("Seen").task_id
    seen = door.elsewhere.get(task_id).rev
    door.elsewhere.edit(task_id, title="Changed")
    words = [*warm(), "aof", "cancel", task_id, "--expect-rev", str(seen)]
    plain = subprocess.run(words, env=environment(door.root), capture_output=True, text=True, check=False, timeout=60)
    assert plain.returncode == 4
    assert "title was Seen, is Changed" in plain.stderr
    told = subprocess.run(
        [*words, "--json"], env=environment(door.root), capture_output=True, text=True, check=False, timeout=60
    )
    details = json.loads(told.stdout)["error"]["details"]
    assert (details["expected"]["rev"], details["expected"]["title"]) == (seen, "Seen")
    assert details["current"]["title"] == "Changed"
