"""The merge of histories that forked: commits of all lanes in, the merge lane out."""
