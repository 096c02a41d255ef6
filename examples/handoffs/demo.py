"""Five ways in which work goes from one agent to another, live, with `aof up` and real processes.

A chain of three; a review by three, where the majority decides; an escalation to a person; an agent that never
acknowledges; one that dies after it has accepted. It says first how each should end, and afterwards whether it did; if
one did not, it exits with 1. Everything happens in a scratch directory, or in the folder that is given as an argument
and kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aof

HERE = Path(__file__).parent
SETTINGS = 'schemaVersion = 1\nmaintainers = ["maintainer"]\n'
PULLING = {"ann": "agrees", "ben": "agrees", "cas": "objects", "writer": "wrote it", "fragile": "dies"}
BOUND = 60.0  # seconds, for a machine that has other things to do


class Planned(NamedTuple):
    """A task that ends as done: what happens to it, and how each handoff of it ends, by its receiver."""

    title: str
    why: str
    handoffs: dict[str, str]


PLAN = (
    Planned(
        "Token refresh",
        "goes from the architect to the implementer to the reviewer",
        {"implementer": "completed", "reviewer": "completed"},
    ),
    Planned(
        "Is the login safe?",
        "is asked of three, and two of them agree",
        {"ann": "completed", "ben": "completed", "cas": "failed"},
    ),
    Planned(
        "Describe the login",
        "goes to an agent that is silent, then to the writer",
        {"silent": "rejected", "writer": "completed"},
    ),
    Planned(
        "Move the data",
        "goes to an agent that dies, then up to ann",
        {"fragile": "escalated", "ann": "completed"},
    ),
    Planned("May we delete the old data?", "is answered by a person", {"human": "completed"}),
)


def main(folder: str) -> int:
    """Start the team, hand work around, and compare what the audit says with what was announced."""
    root, _ = aof.init(f"{folder}/.aof")
    shutil.copytree(HERE / "agents", f"{folder}/agents")
    Path(root, "org").mkdir(exist_ok=True)
    shutil.copy(HERE / "org-chart.yaml", f"{root}/org/org-chart.yaml")
    Path(root, "aof.toml").write_text(SETTINGS, encoding="utf-8")
    print("\nFive tasks are handed around. Each should be done in the end:\n")
    for task in PLAN:
        print(f"  {task.title:<28}  {task.why}")
    command(root, "trust", "--yes", quiet=True)
    wrong: list[str] = []
    try:
        with ExitStack() as team, aof.open(root, actor="maintainer") as fabric:
            team.enter_context(process(root, "-m", "aof", "up"))
            for name, says in PULLING.items():
                team.enter_context(process(root, f"{folder}/agents/pulls.py", name, says))
            hand_around(root, fabric)
    except (TimeoutError, aof.AofError, subprocess.SubprocessError) as error:
        wrong.append(str(error))
    finally:
        command(root, "trust", "revoke", quiet=True)
    with aof.open(root, actor="maintainer") as fabric:
        tell(fabric)
        wrong += differences(fabric)
        records = fabric.audit_verify().checked
    if wrong:
        print("\nNot all is as announced.", *wrong, sep="\n  ", flush=True)
    else:
        print(f"\nAll {len(PLAN)} tasks ended as announced, and all {records} audit records are as they were written.")
    return 1 if wrong else 0


def hand_around(root: str, fabric: aof.Fabric) -> None:
    """Begin everything, answer as a person, and wait until all of it has come to its end."""
    chain = fabric.create("Token refresh", agent="architect", review=False).task_id
    review = begin(fabric, "broadcast", "Is the login safe?", "ann", "ben", "cas", aggregation="majority", timeout="1m")
    docs = begin(fabric, "delegation", "Describe the login", "silent", capabilities=["docs"], timeout="1m")
    data = begin(fabric, "delegation", "Move the data", "fragile", timeout="1s", on_timeout="escalate")
    asked = begin(fabric, "escalation", "May we delete the old data?", "human", rationale="it cannot be undone")
    print("\nA person answers on the command line:\n")
    command(root, "handoff", "answer", asked.handoff, "--text", "yes, after a backup")
    conclude(fabric, asked.task, "yes, after a backup")
    until(lambda: fabric.get(chain).status == "done", "the chain")
    until(lambda: fabric.handoff_group(review.handoff).state != "open", "the review")
    conclude(fabric, review.task, "the majority agrees")
    until(lambda: is_done(fabric, docs) and is_done(fabric, data), "the delegations")


class Begun(NamedTuple):
    """A task that was handed over, and the handoff, or the whole broadcast."""

    task: str
    handoff: str


def begin(fabric: aof.Fabric, kind: str, title: str, *to: str, **given: Any) -> Begun:
    """Hand a new task over: a delegated one is the receiver's to do, the others only put a question."""
    delegated = kind == "delegation"
    task = fabric.create(title, review=False, agent=to[0] if delegated else None, backlog=not delegated).task_id
    made = fabric.handoff_new(type=kind, task_id=task, reason=title, to=list(to), **given)
    return Begun(task, str(made.broadcast_group_id or made.handoff_id))


def conclude(fabric: aof.Fabric, task: str, summary: str) -> None:
    """The question of a task is answered, and nothing else is to be done."""
    fabric.update(task, status="ready")
    fabric.complete(task, summary=summary)


def is_done(fabric: aof.Fabric, begun: Begun) -> bool:
    """Whether somebody has done it and brought the result, whoever the handoff went on to."""
    here = fabric.handoff_show(begun.handoff)
    while here.forwarded_to is not None:
        here = fabric.handoff_show(here.forwarded_to)
    return here.state == "completed" and fabric.get(begun.task).status == "done"


def tell(fabric: aof.Fabric) -> None:
    """What the audit says of each task."""
    for row in fabric.list().tasks:
        print(f"\n{row.title}: {row.status}")
        for one in fabric.audit(task=row.id).records:
            about = "" if one.reason == row.title else f": {one.reason}"
            print(f"  {one.timestamp[11:19]}  {one.event_type:<10} {one.from_agent} → {one.to_agent}{about}")


def differences(fabric: aof.Fabric) -> list[str]:
    """What is not as it was announced, in words; nothing where all is."""
    found = {row.title: row for row in fabric.list().tasks}
    wrong = [f"'{title}' was not announced." for title in found.keys() - {task.title for task in PLAN}]
    for task in PLAN:
        row = found.get(task.title)
        if row is None or row.status != "done":
            wrong.append(f"'{task.title}' should be done, and is {'missing' if row is None else row.status}.")
            continue
        ends = {one.to_agent: one.state for one in fabric.handoff_list(task=row.id)}
        if ends != task.handoffs:
            wrong.append(f"The handoffs of '{task.title}' should end as {task.handoffs}, and ended as {ends}.")
    return wrong + [f"The audit has a problem: {problem}" for problem in fabric.audit_verify().problems]


@contextmanager
def process(root: str, *words: str) -> Iterator[None]:
    """A process of the team, which ends with the demo."""
    env = os.environ | {"AOF_DATA_DIR": root, "PATH": path()}
    started = subprocess.Popen([sys.executable, *words], env=env, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        started.terminate()
        started.wait(BOUND)


def command(root: str, *words: str, quiet: bool = False) -> None:
    """The command line, as a person would use it."""
    sys.stdout.flush()
    line = [sys.executable, "-m", "aof", "--data-dir", root, "--actor", "maintainer", *words]
    out = subprocess.DEVNULL if quiet else None
    subprocess.run(line, check=True, env=os.environ | {"PATH": path()}, timeout=BOUND, stdout=out)


def path() -> str:
    """Where agents find the same Python."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until something has happened."""
    end = time.monotonic() + BOUND
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} has not come to its end")
        time.sleep(0.05)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(sys.argv[1]))
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(main(scratch))
