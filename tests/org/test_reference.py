"""The documentation tells the truth: its example is a sound chart, and it names every key and every code."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from aof.kernel import findings
from aof.org import chart
from aof.org import model as org_model
from aof.org.rights import KINDS_BY_NAME
from aof.store.files.definitions import OrgFile
from tests.support.repository import ROOT

REFERENCE = (ROOT / "docs" / "reference" / "org-chart.md").read_text()
HOWTO = (ROOT / "docs" / "howto" / "route-tasks.md").read_text()


def test_the_examples_load_and_have_nothing_to_mend(tmp_path: Path) -> None:
    for text in (REFERENCE, HOWTO):
        example = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
        (tmp_path / "org").mkdir(exist_ok=True)
        (tmp_path / "org" / "org-chart.yaml").write_text(example)
        report = OrgFile(str(tmp_path)).report()
        assert (report.state, report.findings) == ("current", ())
        assert report.chart.declared


def test_the_reference_names_every_key() -> None:
    kinds = [kind for kind in vars(org_model).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    kinds = [kind for kind in kinds if kind not in {org_model.Gate, org_model.KeptChart}]  # written elsewhere
    keys = {field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)}
    assert len(keys) > 30
    assert {key for key in keys if not re.search(rf"\b{key}\b", REFERENCE)} == set()


def test_the_reference_names_every_code_of_the_lint_and_every_role_that_means_something() -> None:
    source = "".join(Path(str(module.__file__)).read_text() for module in (chart, findings))
    codes = set(re.findall(r'"([a-z]+_[a-z_]+)"', source))
    assert {"unknown_key", "bad_duration", "escalation_cycle", "never_matches"} <= codes
    assert {code for code in codes if f"`{code}`" not in REFERENCE} == set()
    assert all(f"`{name}`" in REFERENCE for name in KINDS_BY_NAME)
