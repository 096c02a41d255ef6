"""Tests of MAILBOX.md as text."""
