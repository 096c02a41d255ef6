"""Tests of proposals and disagreements."""
