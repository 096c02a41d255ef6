"""Tells whether the log was replaced by another one. A module of its own, so that reading a task loads no log code."""

from __future__ import annotations


class LogReplaced(Exception):
    """Somebody has put another log there, as a switch of branches does: nothing that was loaded counts any more."""


class TipsApart(Exception):
    """The log has several tips, as clones have worked apart: they are merged before anything is appended."""


class Overtaken(Exception):
    """Somebody has changed what a decision rests on, as can happen where lock files are deleted: begin again."""
