"""The closed sets of words that commands and results take, as types."""

from __future__ import annotations

from typing import Literal

Status = Literal["backlog", "ready", "in-progress", "review", "blocked", "done", "cancelled", "deadletter"]
Priority = Literal["critical", "high", "normal", "low"]
BlockedKind = Literal["blocked", "waiting_input", "waiting_permission", "waiting_resource", "paused"]
Visibility = Literal["foreground", "background", "internal", "hidden"]
Cause = Literal["failed", "timed_out", "lost"]
Ending = Cause | Literal["paused", "blocked", "cancelled", "released"]  # of a run that no failure ended, too
Outcome = Literal["complete", "needs_review", "blocked"]  # as a report says it; a result has words of its own
Delivery = Literal["pending", "queued", "delivered", "failed"]
Sort = Literal["id", "priority", "created", "updated", "due", "title", "status", "relevance"]
Stream = Literal["stdout", "stderr"]
GraphForm = Literal["tree", "mermaid", "dot", "svg"]
LockMode = Literal["exclusive", "shared"]
