"""The benchmark: what a durable commit costs beside the bare disk, what size costs, what a call of the command costs.

Part of the package, so that everybody can judge their own machine with `aof admin bench`. It needs nothing but AOF
itself.
"""
