"""Histories that several clones wrote, brought together into a merge lane."""
