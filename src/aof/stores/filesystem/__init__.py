"""The default store: plain files, a log, and an index that may be deleted."""
