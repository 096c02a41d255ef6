"""Records that are not tasks: handoffs, hop runs, tokens, org chart, workflows."""
