"""WORKLOG, MAILBOX and charter: text that follows the log and that people edit, too."""
