"""Operations on the documents of a team: WORKLOG, MAILBOX, charter, and what stands in conflict in them."""
