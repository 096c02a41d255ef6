"""Tests of the MCP server's own parts; what it answers is tested in `tests/surfaces`."""
