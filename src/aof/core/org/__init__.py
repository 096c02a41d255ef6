"""The org chart: who there is, what each can do, who gets which task. Pure: no files, clock or log."""
