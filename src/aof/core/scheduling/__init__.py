"""What should be done next, and why: from what is there to a list of actions. Nothing here acts."""
