"""The way of a command: who gives it, whether that is proven, load, decide, commit, notify."""
