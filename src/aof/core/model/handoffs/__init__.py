"""Handoffs as data: the record, what it carries, and the shape that earlier versions wrote."""
