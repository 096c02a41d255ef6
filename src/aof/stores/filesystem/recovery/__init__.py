"""After a crash: the journal, redo, and the checkpoint that bounds it."""
