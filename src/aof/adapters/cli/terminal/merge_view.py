"""What came together in a merge of histories, said to a person. Must not know how it was asked for."""

from __future__ import annotations

from typing import Any

from aof.adapters.cli.terminal.screen import Screen

_COMMIT = "commit the result: git add -A .aof && git commit"


def show(screen: Screen, merged: Any) -> None:
    """How much was merged, then everything that needs a look."""
    if merged.histories == 1 and not merged.commits:
        screen.line("there is only one history: nothing to merge")
        for note in merged.notes:
            screen.say(note, cut_off=False)
        return
    would = "would merge" if merged.dry_run else "merged"
    commits = f"{merged.commits} change{'' if merged.commits == 1 else 's'}"
    tasks = f"{merged.touched} task{'' if merged.touched == 1 else 's'}"
    screen.line(f"{would} {merged.histories} histories: {commits} to {tasks}")
    for one in merged.renumbered:
        screen.say(("renumbered", "waiting"), f"  {one.old} → {one.new}  {one.title}", cut_off=False)
    for task in merged.tasks:
        screen.say(f"{task.task_id}  ", (task.status, task.status), f"  {task.title}", cut_off=False)
        for note in task.notes:
            screen.say(f"  {note}", cut_off=False)
    for note in merged.notes:
        screen.say(note, cut_off=False)
    if not merged.dry_run:
        screen.line(_COMMIT)
