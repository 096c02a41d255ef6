"""Runs of a task: who may write, how a run ends, what happens when its worker vanishes."""
