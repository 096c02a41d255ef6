"""Writes the settings that connect a project's agents, and takes them away again."""
