"""What each verb does: one function per verb."""
