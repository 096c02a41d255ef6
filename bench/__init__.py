"""The benchmark: what a durable commit costs beside the bare disk, beside other queues, and in a large directory."""
