"""The tree of errors, one module per subject. The core returns them as values; the edge raises them.

`aof.errors` draws the tree and exports every name.
"""
