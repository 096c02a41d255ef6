"""Jobs: schedules and batches that create tasks."""
