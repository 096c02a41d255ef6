"""Operations for people who supervise agents: the inbox, questions, and views of the work."""
