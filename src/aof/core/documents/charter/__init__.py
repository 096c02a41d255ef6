"""The session charter: its data, what is wrong with it, and who may change it."""
