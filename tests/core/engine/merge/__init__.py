"""The merge of histories."""
