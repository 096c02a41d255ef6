"""Push notifications: which addresses a peer may name, what is kept of them, and how they are told."""
