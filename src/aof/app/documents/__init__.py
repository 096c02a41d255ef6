"""Services for WORKLOG, MAILBOX and charter, the Markdown files that agents and people share."""
