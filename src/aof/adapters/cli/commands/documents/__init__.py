"""The verbs of WORKLOG, MAILBOX and charter."""
