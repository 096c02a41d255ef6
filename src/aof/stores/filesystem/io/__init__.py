"""Files, locks and paths: every write to the disk is made here."""
