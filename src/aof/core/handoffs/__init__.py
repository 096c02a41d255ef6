"""Handoffs: control, context and responsibility passing from one agent to another."""
