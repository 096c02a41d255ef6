"""The commits of a merge: how lanes hang together, their canonical order, and what is born in them."""
