"""The merge of histories that several clones wrote. Pure."""
