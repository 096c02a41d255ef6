"""The page for people who supervise agents: views, actions and what keeps them live, all by way of the operations."""
