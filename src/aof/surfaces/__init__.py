"""Everything that others meet AOF by: the command line, MCP, HTTP, the board, Agent2Agent.

A surface knows operations, no store and no other surface.
"""
