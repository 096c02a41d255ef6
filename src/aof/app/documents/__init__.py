"""Services for WORKLOG, MAILBOX and charter."""
