"""The operations as routes, their document, and the stream of events."""
