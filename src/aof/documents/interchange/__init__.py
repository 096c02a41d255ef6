"""The task files of other tools as text: read into one shape, and written as a table or as JSON (pure)."""
