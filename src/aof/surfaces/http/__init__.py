"""The operations as HTTP routes, and what every request over HTTP must pass: names, limits, tokens."""
