"""What handoffs carry: shared context, conversation history and artifacts, as data."""
