"""What surfaces ask: the fabric, the catalogue of operations, and calls from outside. Must not know any surface."""
