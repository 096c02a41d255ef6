"""What `aof.toml` may say, and what is told to somebody who wrote something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.config import Settings, default_text, load_settings, with_solo
from aof.errors import InvalidInput

WRITTEN = """
project = "house"
maintainers = ["ada", "bert"]

[storage]
durability = "relaxed"
lockTimeout = 3
allowNetworkFilesystem = true

[lease]
ttl = 12.5

[retry]
maxAttempts = 5

[resources]
gpu = 2
"""


def _load(folder: Path, text: str) -> Settings:
    (folder / "aof.toml").write_text(text)
    return load_settings(str(folder))


def test_what_is_not_said_has_its_default(tmp_path: Path) -> None:
    for text in ("", "# nothing\n", "schemaVersion = 1\n", 'project = "x"\n'):
        settings = _load(tmp_path, text)
        assert (settings.storage.durability, settings.storage.lock_timeout) == ("full", 10.0)
        assert (settings.lease.ttl, settings.retry.max_attempts, dict(settings.resources)) == (300.0, 3, {})


def test_every_setting_can_be_said(tmp_path: Path) -> None:
    settings = _load(tmp_path, WRITTEN)
    assert (settings.project, settings.maintainers) == ("house", ("ada", "bert"))
    assert vars(settings.storage) == {"durability": "relaxed", "lock_timeout": 3.0, "allow_network_filesystem": True}
    assert isinstance(settings.storage.lock_timeout, float)
    policy = settings.policy()
    assert (policy.lease_ttl_ms, policy.max_attempts, policy.retry_cap_ms) == (12_500, 5, 900_000)
    assert policy.resource_slots == {"gpu": 2}


@pytest.mark.parametrize("project", ["house", 'Ada\'s "house"', "a\\b", "größe", "tab\there", ""])
def test_a_new_data_directory_names_its_project_if_that_can_be_written(tmp_path: Path, project: str) -> None:
    settings = _load(tmp_path, default_text("ada", project))
    assert settings.project == (project if project.isprintable() and project else None)
    assert settings.maintainers == ("ada",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("speed = 3", "there is no setting 'speed'"),
        ("[storage]\nfast = true", "there is no setting 'storage.fast'"),
        ('[storage]\ndurability = "maybe"', "'storage.durability' must be 'full' or 'relaxed', not 'maybe'"),
        ('[lease]\nttl = "long"', "'lease.ttl' must be a number, not 'long'"),
        ("[lease]\nttl = true", "'lease.ttl' must be a number, not True"),
        ("[retry]\nmaxAttempts = 2.5", "'retry.maxAttempts' must be a whole number, not 2.5"),
        ("[retry]\nmax_attempts = 2", "there is no setting 'retry.max_attempts'"),
        ("storage = 1", "'storage' must be a table, not 1"),
        ('maintainers = "ada"', "'maintainers' must be a list, not 'ada'"),
        ('maintainers = ["ada", 3]', "'maintainers[1]' must be a text, not 3"),
        ('[resources]\ngpu = "two"', "'resources.gpu' must be a whole number, not 'two'"),
        ("project = 1", "'project' must be a text, not 1"),
        ("project =", "aof.toml cannot be used"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        _load(tmp_path, text)
    assert said in refused.value.message
    assert refused.value.details["path"].endswith("aof.toml")


def test_identity_is_one_word_or_a_table(tmp_path: Path) -> None:
    for text, expected in (
        ("", (False, False, False)),
        ('identity = "strict"\n', (True, False, False)),
        ('identity = "open"\nunlistedAgents = "refuse"\n', (False, False, True)),
        ('unlistedAgents = "worker"\n[identity]\nmode = "strict"\nrequireSecret = true\n', (True, True, False)),
    ):
        policy = _load(tmp_path, text).policy()
        assert (policy.strict, policy.require_secret, policy.refuse_unlisted) == expected


def test_an_identity_that_there_is_not_is_named(tmp_path: Path) -> None:
    for text in ('identity = "strickt"\n', '[identity]\nmode = "strickt"\n', 'unlistedAgents = "none"\n'):
        with pytest.raises(InvalidInput) as refused:
            _load(tmp_path, text)
        assert text.split('"')[1] in refused.value.message


def test_self_review_is_allowed_where_the_settings_mention_it() -> None:
    assert with_solo(default_text("ada")) == default_text("ada", solo=True)
    assert (with_solo("schemaVersion = 1\n") or "").startswith("selfReview = true")
    assert with_solo("selfReview = false\n") is None
