"""What people are told, and through which channel: news from the log, rules, digests, and one outbox per channel."""
