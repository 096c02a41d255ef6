"""Jobs: durable schedules and batches that create tasks."""
