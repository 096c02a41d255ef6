"""Operations of people who supervise agents: what needs them, who is at work, how it goes."""
