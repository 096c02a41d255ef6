"""Where a channel leads, and that nothing of it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.kernel.ports import ChannelFailed
from aof.service.channels import Address, shown_address


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#nuxref", "slack://(hidden)"),
        ("json://user:pa55@127.0.0.1:8080/path?token=x", "json://127.0.0.1:8080/(hidden)"),
        ("jsons://hooks.example.org", "jsons://hooks.example.org/(hidden)"),
        ("json://pa55\x1b[2J@\x1b[31m/x", "json://(hidden)"),
        ("mailto://me:pa55@example.org", "mailto://(hidden)"),
        ("pa55", "(no address)"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, expected: str) -> None:
    assert shown_address(url) == expected


def test_an_address_comes_from_a_variable(tmp_path: Path) -> None:
    kept = Address(str(tmp_path), variable="CHAT", environment={"CHAT": " json://host/x \n"})
    assert kept.read() == "json://host/x"
    assert kept.shown == "the address in $CHAT"
    with pytest.raises(ChannelFailed, match="CHAT is not set"):
        Address(str(tmp_path), variable="CHAT", environment={}).read()


def test_an_address_comes_from_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    root, file = tmp_path / ".aof", tmp_path / "chat.url"
    root.mkdir()
    file.write_text("json://host/pa55\n")
    file.chmod(0o600)
    assert Address(str(root), file=str(file)).read() == "json://host/pa55"
    file.chmod(0o640)
    with pytest.raises(ChannelFailed, match="chmod 600") as refused:
        Address(str(root), file=str(file)).read()
    assert "pa55" not in str(refused.value)
    inside, link = root / "chat.url", tmp_path / "link"
    inside.write_text("json://host/x")
    inside.chmod(0o600)
    file.chmod(0o600)
    link.symlink_to(file)
    for path in (str(inside), "chat.url", str(link), str(tmp_path / "none")):
        with pytest.raises(ChannelFailed):
            Address(str(root), file=path).read()


@pytest.mark.parametrize("url", ["pa55", "json://host/\x1bpa55", "json://" + "pa55" * 2000])
def test_what_is_no_address_is_refused_without_repeating_it(tmp_path: Path, url: str) -> None:
    with pytest.raises(ChannelFailed) as refused:
        Address(str(tmp_path), url=url).read()
    assert "pa55" not in str(refused.value)
