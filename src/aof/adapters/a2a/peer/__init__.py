"""Tasks that we give to peers: one process per run, which sends the task, follows it and takes in what comes back."""
