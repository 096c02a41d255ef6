"""Tests of the stores: crashes, races, hand edits, models."""
