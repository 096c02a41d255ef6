"""Proposals, counter-recommendations and what became of them, as the entries of a WORKLOG tell it. Pure."""
