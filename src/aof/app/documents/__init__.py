"""Services of WORKLOG, MAILBOX and charter."""
