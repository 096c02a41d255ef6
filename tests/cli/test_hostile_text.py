"""Whatever others have written, no verb lets it control a terminal: in answers, errors and hints, on both streams.

Every verb of the vocabulary is called: with hostile words, and on data in which every field that others can write
holds what could do harm. A new verb is covered by the first kind at once, and needs a row for the second.
"""

from __future__ import annotations

import ast
import json
import unicodedata
from pathlib import Path

import pytest

from aof.errors import AofError
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.support.printable import clean, escaped
from aof.surfaces.cli.grammar import FLAG, Verb
from aof.surfaces.cli.main import main
from aof.surfaces.cli.screen import _COLOURS, width
from aof.surfaces.cli.verbs import VERBS
from tests.support.terminal import shown

CLIPBOARD, HYPERLINK = "\x1b]52;c;aGFja2Vk\x07", "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\"
CSI, ALTERNATE = "\x1b[2J\x1b[3;4H\x1b[95m", "\x9b2J\x9d52;c;aGk=\x9c"
BIDI, TAGS = "\u202eevil\u2066x\u2069\u200f", "\U000e0041\U000e0042\U000e007f"
OVERWRITTEN, FORGED = "harmless\rforged\b\b\b", "real\n  → aof cancel 001\x7f\x00"
HARMFUL = f"{CLIPBOARD}{HYPERLINK}{CSI}{ALTERNATE}{BIDI}{TAGS}{OVERWRITTEN}\u2028"
QUIET = f"{BIDI}{TAGS}"  # what even a field of one line takes
HAND = ("handoff", "new", "--task", "007", "--from", "ada", "--type")
SURROGATE = "\udcff\ud800"
WORDS = (HARMFUL + SURROGATE, FORGED.replace("\x00", ""), QUIET)
SERVES = {"mcp", "admin bench", "up"}  # they go on, or take long: here only their refusals are looked at


def harmless(text: str) -> bool:
    """Whether a terminal shows the text and does nothing else."""
    return all(
        one.isprintable() or one in "\n\t\u200d" or unicodedata.category(one) in ("Zs", "Co", "Cn") for one in text
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a hostile name, and in it a data directory full of hostile text."""
    folder = tmp_path_factory.mktemp("world") / f"dir{CSI}{BIDI}{CLIPBOARD}"
    folder.mkdir()
    root = Path(init_data_dir(folder / ".aof")[0])
    with open_fabric(root, actor="pm") as fabric:

        def worst(call: object, **given: object) -> object:
            """Make the call with the worst text that each of its fields takes."""
            assert callable(call)
            for text in (HARMFUL, OVERWRITTEN, QUIET):
                try:
                    return call(**{name: text if value is Ellipsis else value for name, value in given.items()})
                except AofError:
                    continue
            raise AssertionError(f"{call} takes no text at all")

        for _ in range(8):
            worst(fabric.create, title=f"T {QUIET}", brief=..., tags=[f"t{QUIET}"], metadata={"note": HARMFUL})
        ids = [row.id for row in fabric.list().tasks]
        for one in ids[:4]:
            fabric.claim(one, agent="ada")
        worst(fabric.progress, task_id=ids[0], agent="ada", text=..., note=..., blockers=[QUIET])
        worst(fabric.fail, task_id=ids[1], agent="ada", code="broken", message=...)
        worst(fabric.complete, task_id=ids[2], actor="ada", summary=...)
        worst(fabric.block, task_id=ids[4], reason=...)
        worst(fabric.cancel, task_id=ids[5], reason=...)
        worst(fabric.update, task_id=ids[0], actor="ada", body=...)
    ready = root / "tasks" / "ready"
    (ready / f"new{BIDI}.md").write_text(f"# New {HARMFUL}\n\n{HARMFUL}\n")
    (ready / f"odd{CSI}.txt").touch()
    (ready / "TASK-2026-01-01-001.md").write_text(f"---\ntitle: [{HARMFUL}\n---\n")
    (root / "workflows").mkdir(exist_ok=True)
    (root / "workflows" / "odd.yaml").write_text(f'name: "{QUIET}"\nhops: [{{id: "{QUIET}"}}]\n')
    (root / "workflows" / f"n{CSI}.yaml").write_text("name: x\n")
    return folder


CALLS: dict[str, tuple[tuple[str, ...], ...]] = {
    "admin": (("admin",), ("admin", HARMFUL)),
    "insights": (("insights",), ("insights", HARMFUL)),
    "create": (("create", f"Title {QUIET}", "--brief", HARMFUL, "--agent", "nobody"),),
    "list": (("list",), ("list", "--tree"), ("list", "--search", QUIET), ("list", "--compact")),
    "ready": (("ready",), ("ready", "--explain")),
    "blocked": (("blocked",),),
    "show": (("show", "001"), ("show", "002"), ("show", "003"), ("show", "005"), ("show", "1", "--at", "9")),
    "status": (("status",), ("status", "--compact")),
    "claim": (("claim", "004", "--agent", "eve"), ("claim", "005", "--agent", "eve"), ("claim", "--agent", "nobody")),
    "heartbeat": (("heartbeat", "004", "--agent", "ada"), ("heartbeat", "004", "--run", HARMFUL)),
    "release": (("release", "004", "--agent", "eve", "--reason", HARMFUL),),
    "progress": (("progress", "004", "--agent", "ada", "--text", QUIET, "--note", HARMFUL, "--phase", QUIET),),
    "update": (("update", "007", "--body", HARMFUL), ("update", "007", "--status", HARMFUL)),
    "edit": (("edit", "007", "--title", f"Other {QUIET}"), ("edit", "007", "--meta", f"{QUIET}={HARMFUL}")),
    "assign": (("assign", "007", "eve"), ("assign", "007", HARMFUL), ("assign", "007", "--nobody")),
    "complete": (
        ("complete", "004", "--agent", "eve", "--summary", HARMFUL),
        ("complete", "004", "--outcome", QUIET),
    ),
    "approve": (("approve", "001", "--reason", HARMFUL),),
    "reject": (("reject", "001", "--blocker", HARMFUL),),
    "fail": (("fail", "004", "--agent", "eve", "--message", HARMFUL), ("fail", "004", "--code", HARMFUL)),
    "cancel": (("cancel", "003", "--reason", HARMFUL),),
    "block": (("block", "008", "--reason", HARMFUL), ("block", "008", "--reason", QUIET)),
    "unblock": (("unblock", "001"),),
    "pause": (("pause", "001", "--reason", HARMFUL),),
    "resume": (("resume", "001"),),
    "retry": (("retry", "001", "--reason", HARMFUL),),
    "archive": (("archive", "001"),),
    "comment": (("comment", "008", HARMFUL), ("comment", "008", QUIET, "--agent", HARMFUL), ("show", "008")),
    "ask": (
        ("ask", "004", HARMFUL, "--agent", "ada", "--choice", QUIET), ("ask", "004", QUIET, "--agent", "ada"),
        ("ask", "004", "--question", HARMFUL, "--agent", "ada"), ("show", "004"),
    ),
    "answer": (("answer", "005", HARMFUL, "--question", QUIET), ("answer", "008", QUIET), ("show", "008")),
    "inbox": (
        ("inbox",),
        ("inbox", "--person", HARMFUL),
        ("inbox", "--kind", HARMFUL),
        ("inbox", "--cursor", HARMFUL),
    ),
    "agents": (("agents",), ("agents", "--agent", HARMFUL), ("agents", "--cursor", HARMFUL)),
    "show moves": (("show", "moves", "001"), ("show", "moves", HARMFUL)),
    "insights timeline": (
        ("insights", "timeline", "001"),
        ("insights", "timeline", "--agent", HARMFUL),
        ("insights", "timeline", "--since", HARMFUL),
    ),
    "graph near": (("graph", "near", "001"), ("graph", "near", HARMFUL)),
    "insights flow": (("insights", "flow"), ("insights", "flow", "--days", HARMFUL)),
    "log at": (("log", "at", "001"), ("log", "at", "001", "--seq", "9"), ("log", "at", HARMFUL)),
    "bulk": (("bulk", "cancel", "001", "002", "--reason", HARMFUL), ("bulk", "edit", "--tag", HARMFUL, "--dry-run")),
    "unarchive": (("unarchive", "001"),),
    "reopen": (("reopen", "001", "--reason", HARMFUL),),
    "undo": (("undo",), ("undo", "001", "--dry-run")),
    "dep": (("dep", "add", "007", "006"), ("dep", "add", "007", HARMFUL), ("dep", HARMFUL, "007", "006")),
    "log": (("log",), ("log", "001"), ("log", "--format", "agentruntime"), ("log", "--format", HARMFUL)),
    "link": (("link", "007", "evidence", QUIET, "--reason", HARMFUL), ("link", "007", HARMFUL, "x")),
    "link rm": (("link", "rm", "007", "evidence", QUIET),),
    "graph": (
        ("graph",),
        ("graph", "--format", "mermaid"),
        ("graph", "--format", "dot"),
        ("graph", "--format", "svg"),
    ),
    "board": (("board", "--once"), ("board",)),
    "watch": (("watch", "--once"), ("watch",)),
    "admin replay": (("admin", "replay", "--at", "12"),),
    "export": (("export", f"{CSI}/x.tar.gz"), ("export", f"out{QUIET}.tar.gz")),
    "import": (("import", f"none{HARMFUL}"), ("import", "odd.tar", "--data-dir", f"new{CSI}")),
    "completion": (("completion", "bash"),),
    "admin snapshot": (("admin", "snapshot"), ("admin", "snapshot", "--at", "9")),
    "search": (("search", "evil"), ("search", HARMFUL), ("search", QUIET)),
    "whoami": (("whoami",), ("whoami", "--actor", HARMFUL)),
    "templates": (("templates",), ("create", "x", "--template", HARMFUL)),
    "send": (("send", "messages.txt"), ("send", f"none{HARMFUL}")),
    "session-end": (("session-end", "--agent", "ada"),),
    "handoff": (
        (*HAND, "escalation", "--to", "bob", "--reason", HARMFUL, "--rationale", HARMFUL),
        (*HAND, "broadcast", "--to", f"x{QUIET}", "--reason", HARMFUL),
        ("handoff", "list"),
        ("handoff", "list", "--to", HARMFUL),
        ("handoff", "show", HARMFUL),
        ("handoff", "chain", "007"),
        ("handoff", HARMFUL),
    ),
    "output": (("output", "004"), ("output", HARMFUL), ("output", "004", "--stream", HARMFUL)),
    "deliver": (("deliver", "004", "--state", "failed", "--reason", HARMFUL), ("deliver", "004", "--state", HARMFUL)),
    "mail": (
        ("mail", "send", "--to", "bob", "--subject", "x", "--body", HARMFUL),
        ("mail", "inbox", "--agent", "bob"),
        ("mail", "list"),
        ("mail", "show", HARMFUL),
        ("mail", "export"),
        ("mail", "check"),
    ),
    "audit": (("audit",), ("audit", "--handoff", HARMFUL), ("audit", HARMFUL), ("audit", "verify")),
    "lock": (("lock", f"src/{QUIET}", "--task", "004", "--actor", "ada"), ("lock", HARMFUL, "--task", "004")),
    "lock list": (("lock", "list"), ("lock", "list", QUIET), ("lock", "list", "--agent", HARMFUL)),
    "lock release": (
        ("lock", "release", "--task", "004", "--actor", "ada"),
        ("lock", "release", HARMFUL, "--task", "004"),
    ),
    "preflight": (
        ("preflight", "004", "--point", "command", "--subject", HARMFUL, "--actor", "ada"),
        ("preflight", "004", "--point", HARMFUL, "--subject", QUIET),
        ("preflight", "004", "--agent", "eve", "--risk", HARMFUL),
    ),
    "context": (
        ("context", "set", "007", "--var", f"n{QUIET}={HARMFUL}", "--scope", "shared"),
        ("context", "decide", "007", HARMFUL),
        ("context", "artifact", "007", "--path", f"outputs/{QUIET}", "--description", HARMFUL),
        ("context", "show", "007"),
        ("context", HARMFUL, "007"),
    ),
    "admin recover": (("admin", "recover"),),
    "sync": (("sync",),),
    "merge": (("merge",), ("merge", "--dry-run")),
    "admin verify": (("admin", "verify"),),
    "doctor": (("doctor",),),
    "admin reindex": (("admin", "reindex"),),
    "org": (("org", "show"), ("org", "check"), ("org", "route", "007"), ("org", "route", "--tag", HARMFUL)),
    "version": (("version",),),
    "help": (("help", HARMFUL), ("help", "list")),
    "admin token": (
        ("admin", "token", "list"),
        ("admin", "token", "revoke", HARMFUL),
        ("admin", "token", "create", HARMFUL),
    ),
    "admin notify": (("admin", "notify"), ("admin", "notify", "test", HARMFUL), ("admin", "notify", HARMFUL)),
    "worklog": (
        ("worklog", "now", QUIET), ("worklog", "decide", HARMFUL), ("worklog", "show"), ("worklog", "check"),
        ("worklog", "add", "--type", "escalation.requested", "--subject", QUIET, "--body", HARMFUL),
        ("worklog", "add", "--type", HARMFUL), ("worklog", "compact", "--agent", HARMFUL),
    ),
    "conflict": (
        ("conflict",), ("conflict", "show", HARMFUL), ("conflict", "settle", HARMFUL, HARMFUL),
        ("conflict", "default", QUIET, QUIET),
    ),
    "job": (
        ("job", "add", "odd", "--title", QUIET, "--cron", "@daily", "--brief", HARMFUL), ("job", "show", "odd"),
        ("job", "list"), ("job", "add", HARMFUL, "--title", "x", "--cron", HARMFUL), ("job", "rm", HARMFUL),
        ("job", "add", "b", "--item", '{"title":"x","agent":"'+ QUIET +'"}'), ("job", "add", "b", "--file", HARMFUL),
    ),
    "charter": (
        ("charter", "init", "--milestone", QUIET, "--participant", f"ada:{QUIET}:a", "--lane", f"a:ada:{QUIET}/**"),
        ("charter", "show"), ("charter", "check", "--changed", HARMFUL), ("charter", "check", "--git", HARMFUL),
        ("charter", "amend", "--reason", QUIET, "--contract", HARMFUL), ("charter", "sign", "--agent", HARMFUL),
    ),
    "trust": (("trust", "list"), ("trust", "--yes"), ("trust", "revoke"), ("trust", HARMFUL)),
    "prime": (("prime",), ("prime", "--agent", HARMFUL)),
    "workflow": (("workflow", "check"), ("workflow", "show", "odd"), ("workflow", "check", HARMFUL)),
    "admin tick": (("admin", "tick", "--dry-run"), ("admin", "tick")),
    "init": (("init", "--dry-run", "--agent", "generic"), ("init", "--agent", HARMFUL)),
}  # fmt: skip


def with_every_word_hostile(verb: Verb) -> list[tuple[str, ...]]:
    """The verb with hostile arguments, and with each of its options given one."""
    name = verb.name.split()
    calls: list[tuple[str, ...]] = []
    for word in WORDS:
        arguments = tuple(word for _ in verb.arguments)
        calls.append((*name, *arguments))
        calls.append((*name, *arguments, word, f"--{word}"))
        calls += [(*name, *arguments, one.name, word) for one in verb.options if one.kind != FLAG]
    return calls


def assert_clean(words: tuple[str, ...], out: bytes, err: bytes) -> None:
    """Nothing harmful came out, and JSON is still JSON."""
    for text in (out.decode(), err.decode()):
        assert harmless(text), f"{words}: {text!r}"
    if "--json" in words or "--log-json" in words:
        for line in out.decode().split("\n")[:-1]:
            assert line.isprintable()
            json.loads(line)


@pytest.fixture
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hostile folder as the one that commands are called in."""
    monkeypatch.chdir(folder)
    for name in ("AOF_DATA_DIR", "AOF_RUN_ID", "AOF_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AOF_ACTOR", "tester")
    (folder / "messages.txt").write_text(f'AOF/1 {{"protocol": "aof", {HARMFUL}\n')
    (folder / "odd.tar").write_text(HARMFUL)
    (folder / ".aof" / "org").mkdir(exist_ok=True)
    return folder


def test_every_verb_has_a_row() -> None:
    assert {verb.name for verb in VERBS} == CALLS.keys() | SERVES


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.usefixtures("in_folder")
def test_no_verb_lets_hostile_text_through(verb: Verb, form: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    if verb.name in SERVES:  # a word too many: they must not begin
        calls: list[tuple[str, ...]] = [(*verb.name.split(), word, f"--{word}") for word in WORDS]
    else:
        calls = [*CALLS[verb.name], *with_every_word_hostile(verb)]
    for words in calls:
        given = (*words, "--json") if form == "json" else words
        main(list(given))
        assert_clean(given, *capsysbinary.readouterr())


@pytest.mark.usefixtures("in_folder")
def test_a_chart_and_settings_by_others_are_cleaned_too(
    in_folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    root = in_folder / ".aof"
    chart, settings = root / "org" / "org-chart.yaml", root / "aof.toml"
    kept = settings.read_bytes() if settings.exists() else None
    for path, text in (
        (chart, f'agents: [{{id: ada, team: "{QUIET}", escalatesTo: "{QUIET}"}}]\nroles: {{"{QUIET}": {{}}}}\n'),
        (chart, f"agents: [{HARMFUL}"),
        (settings, f'[storage]\n"{QUIET}" = 1\n'),
        (settings, f"[storage\n{HARMFUL}"),
    ):
        path.write_text(text)
        try:
            for words in (("org", "check"), ("org", "show"), ("list",), ("doctor",), ("create", "x")):
                for given in (words, (*words, "--json")):
                    main(list(given))
                    assert_clean(given, *capsysbinary.readouterr())
        finally:
            path.unlink()
            if path == settings and kept is not None:
                path.write_bytes(kept)


@pytest.mark.parametrize("more", [(), ("--log-json",)], ids=["text", "json"])
def test_the_lines_of_the_service_are_cleaned_too(
    tmp_path: Path,
    more: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    folder = tmp_path / f"dir{CSI}{BIDI}"
    folder.mkdir()
    root = Path(init_data_dir(folder / ".aof")[0])
    monkeypatch.chdir(folder)
    with open_fabric(root, actor="pm") as fabric:
        fabric.create(f"T {QUIET}", agent="nobody")
        blocked = fabric.create("Blocked").task_id
        fabric.block(blocked, reason=QUIET)
    (root / "tasks" / "ready" / f"new{BIDI}.md").write_text(f"# New {QUIET}\n")

    assert main(["up", "--once", *more]) == 0

    out, err = capsysbinary.readouterr()
    assert b"serving" in out
    assert_clean(("up", *more), out, err)


@pytest.mark.usefixtures("in_folder")
def test_a_traceback_is_cleaned_too(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("AOF_TRACEBACK", "1")

    assert main(["show", f"x{HARMFUL}"]) == 1

    out, err = capsysbinary.readouterr()
    assert b"Traceback" in err
    assert_clean(("show",), out, err)


@pytest.mark.parametrize(
    "words",
    [("list",), ("show", "1"), ("log",), ("board", "--once"), ("graph",), ("blocked",), ("doctor",), ("show", HARMFUL)],
    ids=lambda words: words[0],
)  # fmt: skip
def test_on_a_terminal_only_our_own_colours_are_control_sequences(folder: Path, words: tuple[str, ...]) -> None:
    text = shown(*words, cwd=folder).replace("\r\x1b[K", "")  # a line of progress, where the machine is slow

    for code in ("0", *_COLOURS.values()):
        text = text.replace(f"\x1b[{code}m", "")
    assert text.strip()
    assert harmless(text), repr(text)
    assert [line for line in text.splitlines() if words[0] in ("list", "log", "board") and width(line) > 80] == []


def test_a_message_cannot_forge_a_line_of_its_own(in_folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    main(["show", FORGED.replace("\x00", "")])

    lines = capsysbinary.readouterr()[1].decode().splitlines()
    assert [line for line in lines if line.startswith("  → aof cancel")] == []
    assert in_folder.is_dir()


def test_columns_stay_where_they_are_beside_what_was_cleaned(tmp_path: Path) -> None:
    init_data_dir(tmp_path / ".aof")
    with open_fabric(tmp_path / ".aof", actor="pm") as fabric:
        for title in ("plain", f"T{QUIET}", "日本語 🎉"):
            fabric.create(title, agent="ada")
    lines = shown("list", cwd=tmp_path, more={"NO_COLOR": "1"}).splitlines()
    starts = {width(line[: line.index("ada")]) for line in lines if "ada" in line}
    assert len(starts) == 1


@pytest.mark.parametrize("text", [HARMFUL, FORGED, QUIET, SURROGATE, "plain\ttext\n", "é 日本 👩‍👩‍👧 \u00a0"])
def test_what_is_cleaned_is_harmless_and_what_is_escaped_means_the_same(text: str) -> None:
    assert harmless(clean(text))
    assert harmless(clean(text, lines=True))
    assert "\n" not in clean(text)
    given = json.dumps({"text": text}, ensure_ascii=False)
    assert escaped(given).isprintable()
    assert json.loads(escaped(given)) == json.loads(given)


def test_nobody_writes_to_a_terminal_but_by_the_guarded_streams() -> None:
    surface = Path(main.__code__.co_filename).parent
    found = []
    for path in {*surface.glob("**/*.py")} - {surface / "streams.py"}:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in ("__stdout__", "__stderr__"):
                found.append(f"{path}:{node.lineno}")
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "os.write"
                and ast.unparse(node.args[0]) in "12"
            ):
                found.append(f"{path}:{node.lineno}")
    assert found == []
