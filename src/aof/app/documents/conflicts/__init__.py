"""Proposals, counter-recommendations and their settlement."""
