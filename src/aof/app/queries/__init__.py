"""Questions: lists, one task, history, graph, why something waits. Changes nothing."""
