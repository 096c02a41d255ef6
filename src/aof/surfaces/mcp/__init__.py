"""The operations as tools of the Model Context Protocol, and the sessions of the agents that call them."""
