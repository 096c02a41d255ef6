"""A scripted agent for tests, run as a process of its own: each word is a thing that it does, in order.

Knows nothing of AOF but its environment, its standard input and the form of a message.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime


def out(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def say(kind: str, payload: Mapping[str, object]) -> None:
    """Send a message of this run."""
    whole: dict[str, object] = {
        "protocol": "aof",
        "version": 1,
        "type": kind,
        "taskId": os.environ["AOF_TASK_ID"],
        "fromAgent": os.environ["AOF_AGENT"],
        "toAgent": "dispatcher",
        "sentAt": datetime.now(UTC).isoformat(),
        "payload": payload,
        "nonce": os.environ["AOF_MESSAGE_NONCE"],
    }
    out("AOF/1 " + json.dumps(whole))


def report(outcome: str, *blockers: str) -> None:
    """Send a completion report."""
    payload = {"outcome": outcome, "summaryRef": "outputs/summary.md", "deliverables": [], "blockers": list(blockers)}
    say("completion.report", payload)


def update(text: str) -> None:
    """Send progress."""
    task, agent = os.environ["AOF_TASK_ID"], os.environ["AOF_AGENT"]
    say("status.update", {"taskId": task, "agentId": agent, "progress": text})


def do(word: str) -> None:  # noqa: C901, PLR0912, PLR0915 - a row a word
    """One thing."""
    name, _, rest = word.partition("=")
    match name:
        case "say":
            out(rest)
        case "prove":
            out(rest.replace("NONCE", os.environ["AOF_MESSAGE_NONCE"]))
        case "tell":
            with open(rest, "w", encoding="utf-8") as file:
                file.write(os.environ["AOF_MESSAGE_NONCE"])
        case "complain-nonce":
            sys.stderr.write(os.environ["AOF_MESSAGE_NONCE"] + "\n")
        case "echo":
            for line in sys.stdin.read().splitlines():
                out(line)
                out(line.strip().lstrip("- "))
        case "complain":
            sys.stderr.write(rest + "\n")
        case "brief":
            out(sys.stdin.read())
        case "where":
            names = ("AOF_DATA_DIR", "AOF_TASK_ID", "AOF_RUN_ID", "AOF_AGENT", "AOF_EPOCH")
            hop = {"AOF_HOP": os.environ["AOF_HOP"]} if "AOF_HOP" in os.environ else {}
            out(json.dumps({key: os.environ[key] for key in names} | hop | {"cwd": os.getcwd()}))
        case "update":
            update(rest)
        case "report":
            outcome, *blockers = rest.split(",")
            report(outcome, *blockers)
        case "unknown":
            say("coffee.request", {})
        case "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "hear":
            signal.signal(signal.SIGTERM, lambda *_: out(rest))
        case "detach":
            subprocess.Popen(["sleep", rest], start_new_session=True)
        case "child":
            subprocess.Popen(["sleep", "600"])
        case "flood":
            sys.stdout.write("x" * int(rest) + "\n")
            sys.stdout.flush()
        case "print":
            with open(rest, encoding="utf-8") as file:
                out(file.read())
        case "wait":
            signal.pause()
        case "read":
            with open(rest, encoding="utf-8") as pipe:  # a named pipe: opens when somebody writes to it
                pipe.read()
        case "write":
            with open(rest, "w", encoding="utf-8") as pipe:  # opens when somebody reads from it
                pipe.write("go on")
        case "first":
            if os.environ["AOF_EPOCH"] == "1":
                do(rest)
        case "later":
            if os.environ["AOF_EPOCH"] != "1":
                do(rest)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "maybe":
            if random.randrange(100) < int(rest):
                os.kill(os.getpid(), signal.SIGKILL)
        case "either":
            percent, first, second = rest.split("|")
            do(first if random.randrange(100) < int(percent) else second)
        case "exit":
            sys.exit(int(rest))


if __name__ == "__main__":
    for each in sys.argv[1:]:
        do(each)
