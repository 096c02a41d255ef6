"""The tasks' files: rendering, parsing, and what people did to them."""
