"""Every verb of the command line: those about tasks and the data directory, and with them those of the other tables.

A new one is a row in one of these tables and a function below `verbs`. Must not know what a verb does.
"""

from __future__ import annotations

from aof.adapters.cli.spec.bench import VERBS as _BENCH
from aof.adapters.cli.spec.grammar import MANY, Argument, Option, Verb
from aof.adapters.cli.spec.messages import VERBS as _MESSAGES
from aof.adapters.cli.spec.org import VERBS as _ORG
from aof.adapters.cli.spec.portable import VERBS as _PORTABLE
from aof.adapters.cli.spec.service import VERBS as _SERVICE
from aof.adapters.cli.spec.surfaces import VERBS as _SURFACES
from aof.adapters.cli.spec.workflows import HOP, ROLE
from aof.adapters.cli.spec.workflows import VERBS as _WORKFLOWS

_ID = Argument("ID", "a task ID, or a part of one that stands for a single task", target="task_id")
_MAYBE_ID = Argument(
    "ID", "a task ID or a part of one; none: the next task that this agent can take", required=False, target="task_id"
)
_RUN = Option("--run", "the run to act for, as the claim returned it (else $AOF_RUN_ID)", metavar="R")
_AGENT = Option("--agent", "who acts", metavar="A")
_REASON = Option("--reason", "why; it is recorded", metavar="T")
_ARCHIVED = Option("--archived", "also what was put away")
_FILTERS = (
    Option("--status", "only this status", metavar="S"),
    Option("--agent", "only what this agent holds or is meant to do", metavar="A"),
    Option("--tag", "only with this tag", metavar="T"),
    Option("--search", "only with this text in title or ID", metavar="T"),
    Option("--limit", "at most so many", metavar="N", type="int"),
)
_READY_LIMIT = Option("--limit", "at most so many; 50 unless said", metavar="N", type="int")
_BLOCKERS = Option("--blocker", "what is in the way; may be repeated", metavar="T", kind=MANY, target="blockers")

_KIND = Argument(
    "KIND", "parent, child, blocks, blocked_by, source_task, source_attempt, produced_artifact, evidence …"
)
_TARGET = Argument("TARGET", "the other end: a task, a run, a path")

VERBS: tuple[Verb, ...] = (
    Verb(
        "init",
        "make a data directory, and connect the agents of the project",
        "surfaces:init",
        options=(
            Option("--dry-run", "only show what would be made and written"),
            Option(
                "--agent",
                "connect this one without asking: claude (or claude-code), codex (or codex-cli), cursor "
                "(or cursor-agent), generic (or any); may be repeated",
                metavar="A",
                kind=MANY,
                target="agents",
            ),
            Option("--remove", "take away what was written for agents; the data stays"),
            Option("--shared", "who may read and write the files: owner (the default) or group", metavar="WHO"),
        ),
        example="aof init --agent claude",
    ),
    Verb(
        "create",
        "create a task",
        "tasks:create",
        aliases=("new", "add", "dispatch"),
        arguments=(Argument("TITLE", "a short title"),),
        options=(
            Option("--brief", "the description, or - to read it from standard input", metavar="T"),
            Option("--agent", "the agent that should do it", metavar="A"),
            Option("--role", "the role that should do it", metavar="R"),
            Option("--team", "the team that should do it", metavar="T"),
            Option("--priority", "low, normal, high or critical", metavar="P"),
            Option(
                "--dep", "a task that must be done first; may be repeated", metavar="ID", kind=MANY, target="depends_on"
            ),
            Option("--parent", "the task that this one is a part of", metavar="ID", target="parent_id"),
            Option("--tag", "a tag; may be repeated", metavar="T", kind=MANY, target="tags"),
            Option(
                "--capability",
                "what it takes, as NAME or NAME:0.8 for a least proficiency; may be repeated",
                metavar="C",
                kind=MANY,
                target="capabilities",
            ),
            Option("--workflow", "the workflow to pass through", metavar="W"),
            Option("--resource", "something that only so many running tasks may use at once", metavar="R"),
            Option(
                "--meta",
                "a metadata value as KEY=JSON; may be repeated",
                metavar="K=JSON",
                kind=MANY,
                target="metadata",
            ),
            Option("--max-attempts", "how many runs may fail before it is given up", metavar="N", type="int"),
            Option("--no-review", "done without a review"),
            Option("--backlog", "not ready to be run yet"),
            Option("--key", "an idempotency key: the same call again gives the same task", metavar="K"),
        ),
        example='aof create "Add refresh endpoint" --agent swe-backend --priority high --brief -',
    ),
    Verb(
        "list",
        "list tasks",
        "queries:list_tasks",
        aliases=("ls",),
        options=(*_FILTERS, _ARCHIVED, Option("--tree", "children below their parents")),
        example="aof list --status in-progress",
    ),
    Verb(
        "ready",
        "what can be claimed now, most urgent first",
        "queries:ready",
        aliases=("next",),
        options=(*_FILTERS[1:-1], _READY_LIMIT, Option("--explain", "say also why each other task cannot be claimed")),
        example="aof ready --agent swe-backend --limit 5",
    ),
    Verb("blocked", "what is blocked, and why", "queries:blocked", options=_FILTERS[1:], example="aof blocked"),
    Verb(
        "show",
        "everything about one task",
        "queries:show",
        aliases=("get", "view"),
        arguments=(_ID,),
        options=(Option("--at", "as it was after this event", metavar="SEQ", type="int"),),
        example="aof show 001",
    ),
    Verb(
        "status",
        "how many tasks are in which status",
        "queries:status",
        options=(*_FILTERS, _ARCHIVED),
        example="aof status --compact",
    ),
    Verb(
        "claim",
        "take a task: one winner, under a lease",
        "tasks:claim",
        aliases=("start", "take"),
        arguments=(_MAYBE_ID,),
        options=(
            Option("--agent", "who takes it", metavar="A"),
            Option("--ttl", "how many seconds the lease lasts without a sign of life", metavar="S", type="float"),
            Option("--wait", "wait so many seconds for something to do, or for that task", metavar="S", type="float"),
            Option("--key", "an idempotency key: the same call again gives the same run", metavar="K"),
            HOP,
        ),
        example="aof claim --agent swe-backend",
    ),
    Verb(
        "heartbeat",
        "show that a run is alive",
        "tasks:heartbeat",
        aliases=("beat",),
        arguments=(_ID,),
        options=(_RUN, _AGENT),
        example="aof heartbeat 001 --run RUN-2026-02-21-001-1-5f0c93ab",
    ),
    Verb(
        "release",
        "give a task back unfinished",
        "tasks:release",
        aliases=("unclaim",),
        arguments=(_ID,),
        options=(_RUN, _AGENT, _REASON),
        example="aof release 001 --agent swe-backend",
    ),
    Verb(
        "progress",
        "report how far a run is",
        "tasks:progress",
        arguments=(_ID,),
        options=(
            Option("--text", "what was achieved", metavar="T"),
            Option("--percent", "from 0 to 100", metavar="N", type="float"),
            Option("--phase", "such as planning, working, verifying", metavar="P"),
            Option("--note", "more detail", metavar="T"),
            _BLOCKERS,
            _RUN,
            _AGENT,
        ),
        example='aof progress 001 --text "core logic done" --percent 60 --agent swe-backend',
    ),
    Verb(
        "update",
        "replace the body, or move the status",
        "tasks:update",
        arguments=(_ID,),
        options=(
            Option("--body", "the new body, or - for standard input", metavar="T"),
            Option("--status", "the new status", metavar="S"),
            _REASON,
            _RUN,
            _AGENT,
        ),
        example='aof update 001 --status backlog --reason "not yet"',
    ),
    Verb(
        "edit",
        "change title, description, priority or routing",
        "tasks:edit",
        arguments=(_ID,),
        options=(
            Option("--title", "the new title", metavar="T"),
            Option("--description", "the new description, or - for standard input", metavar="T"),
            Option("--priority", "low, normal, high or critical", metavar="P"),
            Option("--agent", "the agent that should do it", metavar="A"),
            Option("--role", "the role that should do it", metavar="R"),
            Option("--team", "the team that should do it", metavar="T"),
            Option("--tag", "the tags; may be repeated", metavar="T", kind=MANY, target="tags"),
            Option(
                "--meta",
                "a metadata value as KEY=JSON; may be repeated",
                metavar="K=JSON",
                kind=MANY,
                target="metadata",
            ),
        ),
        example="aof edit 001 --priority critical",
    ),
    Verb(
        "complete",
        "end a run with its outcome; in review: approve",
        "tasks:complete",
        aliases=("done", "close", "finish"),
        arguments=(_ID,),
        options=(
            Option("--summary", "what was done; goes to the work log", metavar="T"),
            Option("--outcome", "complete, needs_review or blocked", metavar="O"),
            _BLOCKERS,
            ROLE,
            HOP,
            _RUN,
            _AGENT,
        ),
        example='aof complete 001 --agent swe-backend --summary "12 tests passing"',
    ),
    Verb(
        "approve",
        "accept what is in review",
        "tasks:approve",
        arguments=(_ID,),
        options=(_REASON, HOP),
        example="aof approve 001",
    ),
    Verb(
        "reject",
        "send what is in review back",
        "tasks:reject",
        arguments=(_ID,),
        options=(_BLOCKERS, HOP),
        example='aof reject 001 --blocker "no tests"',
    ),
    Verb(
        "fail",
        "end a run as failed; it is retried while attempts are left",
        "tasks:fail",
        arguments=(_ID,),
        options=(
            Option("--code", "a short name of what went wrong", metavar="C"),
            Option("--message", "what went wrong", metavar="T"),
            Option("--no-retry", "do not try again"),
            _RUN,
            _AGENT,
        ),
        example='aof fail 001 --code tests_failed --message "3 of 20 failed" --agent swe-qa',
    ),
    Verb(
        "cancel",
        "stop a task and everything below it",
        "tasks:cancel",
        arguments=(_ID,),
        options=(_REASON,),
        example='aof cancel 001 --reason "superseded by 010"',
    ),
    Verb(
        "block",
        "hold a task for a reason outside",
        "tasks:block",
        arguments=(_ID,),
        options=(
            _REASON,
            Option("--kind", "blocked, waiting_input, waiting_permission or waiting_resource", metavar="K"),
        ),
        example='aof block 001 --reason "waiting for credentials"',
    ),
    Verb("unblock", "make a blocked task ready", "tasks:unblock", arguments=(_ID,), example="aof unblock 001"),
    Verb(
        "pause", "hold a task on purpose", "tasks:pause", arguments=(_ID,), options=(_REASON,), example="aof pause 001"
    ),
    Verb("resume", "let a paused task go on", "tasks:resume", arguments=(_ID,), example="aof resume 001"),
    Verb(
        "retry",
        "run a finished task again, or end a retry's wait",
        "tasks:retry",
        arguments=(_ID,),
        options=(_REASON,),
        example='aof retry 001 --reason "the service is back"',
    ),
    Verb("archive", "put a finished task away", "tasks:archive", arguments=(_ID,), example="aof archive 001"),
    Verb(
        "dep",
        "add or remove a dependency",
        "tasks:dep",
        aliases=("depends",),
        arguments=(
            Argument("add|rm", "what to do; add unless said", required=False, target="action"),
            _ID,
            Argument("BLOCKER", "the task that must be done first", target="blocker_id"),
        ),
        example="aof dep add 002 001",
    ),
    Verb(
        "log",
        "what happened",
        "data:log",
        aliases=("events", "history"),
        arguments=(Argument("ID", "only this task", required=False, target="task_id"),),
        options=(
            Option("--after", "only events with a greater number", metavar="SEQ", type="int"),
            Option("--type", "only events of this type", metavar="T"),
            Option("--limit", "only the last so many", metavar="N", type="int"),
            Option("--follow", "go on as events come"),
            Option("--format", "native, or agentruntime for portable words", metavar="F"),
        ),
        example="aof log 001",
    ),
    Verb(
        "link",
        "connect a task with a task, a run, an artifact or evidence",
        "tasks:link",
        arguments=(_ID, _KIND, _TARGET),
        options=(_REASON,),
        example="aof link 002 source_task 001",
    ),
    Verb(
        "unlink",
        "remove such a connection",
        "tasks:unlink",
        arguments=(_ID, _KIND, _TARGET),
        example="aof unlink 002 source_task 001",
    ),
    Verb(
        "graph",
        "what depends on what",
        "views:graph",
        arguments=(Argument("ID", "only what is connected with this task", required=False, target="task_id"),),
        options=(Option("--format", "tree, mermaid, dot or svg", metavar="F"),),
        example="aof graph --format mermaid",
    ),
    Verb(
        "board",
        "columns by status, live",
        "views:board",
        options=(Option("--once", "draw once and end"),),
        example="aof board",
    ),
    Verb(
        "watch",
        "who works on what, and what happens, live",
        "views:watch",
        options=(Option("--once", "draw once and end"),),
        example="aof watch",
    ),
    Verb(
        "replay",
        "all tasks as they were after an event",
        "views:replay",
        options=(Option("--at", "the event's number", metavar="SEQ", type="int"),),
        example="aof replay --at 12",
    ),
    Verb(
        "export",
        "write the whole data directory into one file",
        "data:export",
        arguments=(Argument("FILE", "the file to write"),),
        example="aof export backup.tar.gz",
    ),
    Verb(
        "import",
        "make a data directory from an exported file",
        "data:import_data",
        arguments=(Argument("FILE", "the file to read"),),
        example="aof --data-dir copy/.aof import backup.tar.gz",
    ),
    Verb(
        "completion",
        "a script that completes verbs, options and IDs in your shell",
        "data:completion",
        arguments=(Argument("SHELL", "bash, zsh or fish"),),
        example="aof completion bash > ~/.local/share/bash-completion/completions/aof",
    ),
    *_PORTABLE,
    *_MESSAGES,
    Verb("recover", "requeue what vanished workers left", "data:recover", example="aof recover"),
    Verb("sync", "take in what people changed in the files", "data:sync", example="aof sync"),
    Verb(
        "doctor",
        "check the data directory",
        "data:doctor",
        options=(Option("--fix", "mend what can be mended"),),
        example="aof doctor --fix",
    ),
    Verb("reindex", "build the index anew", "data:reindex", example="aof reindex"),
    *_ORG,
    Verb("version", "which AOF this is", "data:version", example="aof version"),
    Verb(
        "help",
        "show help on a verb",
        "data:help_on",
        arguments=(Argument("VERB", "the verb", required=False),),
        example="aof help claim",
    ),
    *_SURFACES,
    *_WORKFLOWS,
    *_SERVICE,
    *_BENCH,
)
