"""What the server offers beside its tools: resources, prompts, completion, reports of progress, long-running tasks."""
