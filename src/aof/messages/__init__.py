"""AOF/1, the protocol of messages: recognising, checking and acting on them."""
