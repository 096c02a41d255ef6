"""Mail between agents: the service, its commands, turns, response times."""
