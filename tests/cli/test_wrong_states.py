"""Wrong states as a person meets them: one sentence, the right call, the right exit code, and never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.terminal import AOF, DEADLINE, Ended, Terminal, aof, environment

IN_A_MOUNT_NAMESPACE = ("unshare", "-m", "--propagation", "private", "sh", "-c")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a data directory and one task."""
    assert aof("init", cwd=tmp_path).code == 0
    assert aof("create", "first", cwd=tmp_path).code == 0
    return tmp_path


def assert_said_well(said: Ended, code: int, *words: str) -> None:
    """One sentence and a hint on standard error, nothing else."""
    assert said.code == code, said.err
    assert "Traceback" not in said.err
    lines = said.err.splitlines()
    assert [line[:4] for line in lines] == ["aof:", "  → "], said.err
    for word in words:
        assert word in said.err
    assert said.out == ""


# --- the machine


def mounting(script: str, folder: Path) -> Ended:
    """Run a script in a mount namespace of its own; `$AOF` is the command."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    done = subprocess.run(
        [*IN_A_MOUNT_NAMESPACE, script],
        cwd=folder,
        env=environment(AOF=" ".join(AOF)),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    if "NO MOUNT" in done.stdout or "unshare failed" in done.stderr:
        pytest.skip("this user cannot mount")
    return Ended(done)


def test_a_full_disk_refuses_and_recovers_when_there_is_space_again(tmp_path: Path) -> None:
    """What was refused is not there; what reached the log before the disk was full is finished by the next command."""
    said = mounting(
        """
        mkdir disk && mount -t tmpfs -o size=600k none disk || { echo NO MOUNT; exit; }
        cd disk && $AOF init >/dev/null && $AOF create first >/dev/null && $AOF list >/dev/null || exit 90
        head -c 2M /dev/zero > ballast 2>/dev/null
        $AOF block 001 --reason full; echo "exit $?"
        $AOF create second --json; echo "exit $?"
        rm ballast
        $AOF doctor >/dev/null; echo "exit $?"
        $AOF create third >/dev/null; echo "exit $?"
        $AOF list --json
        """,
        tmp_path,
    )
    lines = said.out.splitlines()
    blocked, *others = [line for line in lines if line.startswith("exit")]
    assert others == ["exit 1", "exit 0", "exit 0"], (said.out, said.err)
    assert (blocked, "is in the log" in said.err) in (("exit 1", False), ("exit 5", True))
    (envelope,) = [json.loads(line) for line in lines if '"error"' in line]
    assert envelope["error"]["code"] == "disk_full"
    assert "free some space" in said.err
    assert "Traceback" not in said.err
    tasks = {task["title"]: task["status"] for task in json.loads(lines[-1])["data"]["tasks"]}
    assert tasks == {"first": "ready" if blocked == "exit 1" else "blocked", "third": "ready"}


def test_a_full_disk_keeps_nobody_from_looking(tmp_path: Path) -> None:
    said = mounting(
        """
        mkdir disk && mount -t tmpfs -o size=600k none disk || { echo NO MOUNT; exit; }
        cd disk && $AOF init >/dev/null && $AOF create first >/dev/null || exit 90
        head -c 2M /dev/zero > ballast 2>/dev/null
        for verb in list ready status 'show 001' log graph 'board --once'
        do $AOF $verb | grep -q . ; echo "exit $?"; done
        $AOF reindex --json; $AOF export b.tar.gz --json; ls
        rm ballast; $AOF list --json
        """,
        tmp_path,
    )
    *lines, last = said.out.splitlines()
    assert [line for line in lines if line.startswith("exit")] == ["exit 0"] * 7, (said.out, said.err)
    assert [json.loads(line)["error"]["code"] for line in lines if "{" in line] == ["disk_full"] * 2
    assert lines[-1] == "ballast"
    assert [task["title"] for task in json.loads(last)["data"]["tasks"]] == ["first"]


def test_a_read_only_folder_is_told(folder: Path) -> None:
    said = mounting(
        """
        mount --bind . . && mount -o remount,ro,bind . . && cd . || { echo NO MOUNT; exit; }
        cd "$PWD"
        for verb in 'create second' 'list' 'claim 001 --json' 'reindex --json'; do $AOF $verb; echo "exit $?"; done
        """,
        folder,
    )
    lines = said.out.splitlines()
    assert [line for line in lines if line.startswith("exit")] == [
        "exit 1",
        "exit 0",
        "exit 1",
        "exit 1",
    ], (said.out, said.err)
    assert said.err.count("is read-only for this user") == 1
    assert "Traceback" not in said.err
    assert [json.loads(line)["error"]["code"] for line in lines if "{" in line] == ["read_only"] * 2


def test_a_missing_permission_is_told(folder: Path) -> None:
    locks = folder / ".aof" / "locks"
    as_others: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may do everything here")
        as_others = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    locks.chmod(0o000)
    try:
        assert_said_well(
            aof("create", "second", cwd=folder, prefix=as_others), 1, "is read-only for this user", "the right to write"
        )
        said = aof("list", "--json", cwd=folder, prefix=as_others)
        assert (said.code, said.error["code"]) == (1, "storage_failed")
    finally:
        locks.chmod(0o755)


# --- the data directory


def test_no_data_directory_shows_the_way_to_one(tmp_path: Path) -> None:
    assert_said_well(aof("list", cwd=tmp_path), 3, "there is no .aof directory here or above", "aof init")
    assert_said_well(aof("list", "--data-dir", "elsewhere", cwd=tmp_path), 3, "aof --data-dir elsewhere init")


def test_a_directory_of_a_newer_version_is_left_alone(folder: Path) -> None:
    (folder / ".aof/aof.toml").write_text("schemaVersion = 99\n")
    for verb in ("list", "doctor"):
        assert_said_well(aof(verb, cwd=folder), 1, "schemaVersion 99", "newer")
    assert aof("create", "x", "--json", cwd=folder).error["code"] == "unsupported_version"


def test_settings_that_cannot_be_used_are_the_datas_fault_and_not_the_callers(folder: Path) -> None:
    (folder / ".aof/aof.toml").write_text("lease = [\n")
    assert_said_well(aof("list", cwd=folder), 5, "aof.toml", "every setting has a default")
    assert aof("doctor", "--json", cwd=folder).data["problems"][0]["code"] == "settings_unusable"


# --- the task


def test_a_verb_that_does_not_fit_the_status_says_what_it_is_for(folder: Path) -> None:
    rejected = aof("reject", "001", "--reason", "no tests", cwd=folder)  # --reason is how others call --blocker
    assert_said_well(rejected, 1, "is ready; only a task in review can be rejected", "aof show")
    assert aof("claim", "001", "--agent", "ada", cwd=folder).code == 0
    unblocked = aof("unblock", "001", cwd=folder)
    assert_said_well(unblocked, 1, "is in-progress; only a blocked task can be unblocked", "aof show")


def test_a_status_reads_as_english_where_it_stands_in_a_sentence(folder: Path) -> None:
    assert aof("create", "second", "--dep", "001", cwd=folder).code == 0
    assert aof("complete", "001", "--agent", "ada", cwd=folder).code == 0
    assert_said_well(aof("claim", "001", "--agent", "bob", cwd=folder), 1, "-001 is in review", "aof approve")
    assert_said_well(aof("claim", "002", "--agent", "bob", cwd=folder), 1, "-001, which is in review")
    assert_said_well(
        aof("progress", "001", "--text", "x", "--agent", "bob", cwd=folder), 4, "is in review: nobody is running"
    )
    assert "is in review" in aof("ready", "--explain", cwd=folder).out


# --- the words


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("clam", "001"), 2, "did you mean 'claim'?"),
        (("rm", "001"), 2, "aof archive ID"),
        (("claim", "--agnet", "ada"), 2, "did you mean '--agent'?"),
        (("create", "x", "--descripton", "y"), 2, "did you mean '--text'?"),
        (("create", "-p", "high"), 2, "--priority"),
        (("create", "x", "--status", "backlog"), 2, "aof create --help"),
        (("create", "two", "words"), 2, "quotes"),
        (("claim", "001", "--agent"), 2, "needs a value"),
        (("claim", "001", "--agent", "--actor"), 2, "--agent needs a value"),
        (("show", "TASK-2020-01-01-001"), 3, "aof list"),
        (("show", "../../etc/passwd"), 3, "aof list"),
        (("list", "--status", "open"), 2, "in-progress"),
        (("export", "nowhere/backup.tar.gz"), 3, "check the path"),
        (("import", "missing.tar.gz", "--data-dir", "new"), 3, "check the path"),
        (("completion", "tcsh"), 2, "bash"),
    ],
)
def test_a_typo_is_met_with_what_was_meant(folder: Path, words: tuple[str, ...], code: int, expected: str) -> None:
    assert_said_well(aof(*words, cwd=folder), code, expected)


def test_bytes_that_are_no_text_are_refused(folder: Path) -> None:
    done = subprocess.run(
        [*map(os.fsencode, AOF), b"create", b"\xff\xfe"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert_said_well(Ended(done), 2)


def test_a_terminal_that_lacks_letters_gets_what_it_can_show(folder: Path) -> None:
    assert aof("create", "日本 → ü", cwd=folder).code == 0
    said = aof("list", cwd=folder, PYTHONIOENCODING="ascii")
    assert said.code == 0
    assert "?? ? ?" in said.out
    assert aof("show", "999", cwd=folder, PYTHONIOENCODING="ascii").code == 3
    assert aof("list", "--json", cwd=folder, PYTHONIOENCODING="ascii").data["total"] == 2


# --- the streams


def piped(command: str, folder: Path) -> Ended:
    """A shell line with `aof` in it."""
    line = f'aof() {{ {" ".join(AOF)} "$@"; }}; {command}'
    return Ended(
        subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False
        )
    )


def test_a_reader_who_has_seen_enough_is_no_failure(folder: Path) -> None:
    """The log is longer than what a pipe takes at once."""
    (folder / "body").write_text("x" * 200_000)
    assert piped("aof update 001 --body - < body", folder).code == 0
    for verb in ("show 001", "show 001 --json", "log --json"):
        said = piped(f"aof {verb} | head -c 10; echo; echo exit ${{PIPESTATUS[0]}}", folder)
        assert said.err == ""
        assert said.out.splitlines()[-1] == "exit 0"


@pytest.mark.parametrize("form", ["", " --json"])
def test_an_answer_that_cannot_be_written_is_told(folder: Path, form: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    said = piped(f"aof list{form} > /dev/full; echo exit $?", folder)
    assert said.err == "aof: it is done, but the answer could not be written: No space left on device\n"
    assert said.out == "exit 1\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_do_no_harm(folder: Path, closed: str) -> None:
    for verb in ("create another --json", "list", "claim 001 --agent ada"):
        said = piped(f"(aof {verb} {closed}) ; test $? = 0 && echo fine >&2", folder)
        assert said.err.endswith("fine\n"), said.err
    assert aof("doctor", "--json", cwd=folder).data == {"ok": True, "problems": [], "healed": [], "advice": []}


# --- Ctrl-C


def test_ctrl_c_ends_a_wait_for_work(tmp_path: Path) -> None:
    aof("init", cwd=tmp_path)
    for form in ((), ("--json",)):
        with Terminal("claim", "--agent", "ada", "--wait", "600", *form, cwd=tmp_path) as terminal:
            waiting(tmp_path, terminal)
            terminal.type(b"\x03")
            assert terminal.end() == 130
            assert "Traceback" not in terminal.text
            assert "interrupted" in terminal.text
    assert aof("doctor", cwd=tmp_path).code == 0


def waiting(folder: Path, terminal: Terminal) -> None:
    """Until the command has opened the index, which it does before it waits."""
    with terminal.bound() as going_on:
        while going_on() and not terminal.has_open(folder / ".aof" / "locks"):
            pass


@pytest.mark.parametrize("verb", ["watch", "board"])
@pytest.mark.parametrize("way", ["Ctrl-C", "q", "TERM", "HUP"])
def test_live_views_follow_and_give_the_terminal_back(folder: Path, verb: str, way: str) -> None:
    with Terminal(verb, cwd=folder) as terminal:
        terminal.until("ready")
        assert aof("create", "fresh news", cwd=folder).code == 0
        terminal.until("fresh")
        assert "\x1b[2J" not in terminal.text, "the screen is written over and never wiped"
        match way:
            case "Ctrl-C":
                terminal.type(b"\x03")
            case "q":
                terminal.type(b"q")
            case _:
                terminal.signal(signal.Signals[f"SIG{way}"])
        assert terminal.end() == (0 if way in ("Ctrl-C", "q") else 128 + signal.Signals[f"SIG{way}"])
        assert terminal.restored()
        assert "Traceback" not in terminal.text


def test_ctrl_c_is_the_way_to_stop_following_the_log(folder: Path) -> None:
    with Terminal("log", "--follow", cwd=folder, columns=120) as terminal:
        terminal.until("created")
        assert aof("create", "fresh news", cwd=folder).code == 0
        terminal.until("fresh news")
        terminal.type(b"\x03")
        assert terminal.end() == 0
        assert "Traceback" not in terminal.text


def test_ctrl_c_in_a_reindex_leaves_an_index_that_is_built_anew(folder: Path) -> None:
    for wait in range(3):
        with Terminal("reindex", cwd=folder) as terminal:
            with terminal.bound() as going_on:
                while going_on() and not terminal.has_open(folder / ".aof" / ("locks", "tmp", "locks")[wait]):
                    pass
            terminal.type(b"\x03")
            assert terminal.end() in (0, 130)
            assert "Traceback" not in terminal.text
        assert aof("list", "--json", cwd=folder).data["total"] == 1


# --- two terminals


def test_of_two_terminals_one_claims(folder: Path) -> None:
    both = [
        subprocess.Popen(
            [*AOF, "claim", "001", "--agent", agent, "--json"], cwd=folder, env=environment(), stdout=subprocess.PIPE
        )
        for agent in ("ada", "bob")
    ]
    answers = [json.loads(one.communicate(timeout=DEADLINE)[0]) for one in both]
    assert sorted(one.returncode for one in both) == [0, 4]
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == ["already_claimed"]


def test_a_file_that_is_no_export_is_told_in_one_sentence(folder: Path) -> None:
    (folder / "junk.tar.gz").write_text("junk", encoding="utf-8")
    assert_said_well(aof("--data-dir", "new", "import", "junk.tar.gz", cwd=folder), 2, "junk.tar.gz cannot be read")
    assert not (folder / "new").exists()


@pytest.mark.parametrize("where", ["frontmatter", "whole"])
def test_a_merge_that_nobody_has_settled_is_named_as_that(folder: Path, where: str) -> None:
    (file,) = (folder / ".aof" / "tasks" / "ready").glob("*.md")
    ours = file.read_text(encoding="utf-8")
    theirs = ours.replace('title: "first"', 'title: "theirs"')
    if where == "whole":
        text = f"<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> other\n"
    else:
        both = '<<<<<<< HEAD\ntitle: "first"\n=======\ntitle: "theirs"\n>>>>>>> other'
        text = ours.replace('title: "first"', both)
    file.write_text(text, encoding="utf-8")
    claimed = aof("claim", "001", "--agent", "ada", cwd=folder)
    assert_said_well(claimed, 5, "merge that nobody has settled", "Keep one side", "doctor --fix")
    assert "merge that nobody has settled" in aof("show", "001", cwd=folder).out
