"""Agent2Agent, with the official client and with peers of all kinds."""
