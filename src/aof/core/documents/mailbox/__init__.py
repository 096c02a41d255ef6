"""The rules of mail between agents: statuses, who may change them, receivers, payloads and response times."""
