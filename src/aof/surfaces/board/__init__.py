"""The web page for people who supervise agents.

Views, actions and what keeps them live, all by way of the operations.
"""
