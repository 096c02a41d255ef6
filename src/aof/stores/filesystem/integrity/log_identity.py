"""What says that the log is another one than before. By itself, so that who only looks at a task loads no log."""

from __future__ import annotations


class LogReplaced(Exception):
    """Somebody has put another log there, as a switch of branches does: nothing that was loaded counts any more."""


class Overtaken(Exception):
    """Somebody has changed what a decision rests on, as can happen where lock files are deleted: begin again."""
