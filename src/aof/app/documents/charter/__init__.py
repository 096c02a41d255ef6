"""The session charter: created, amended, signed, shown and checked."""
