"""Questions over many subjects: lists, history, graph, search. Changes nothing."""
