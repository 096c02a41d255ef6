"""Samples of data that older versions wrote."""
