"""AOF over HTTP: every operation, the stream of events, and the document that describes them."""
