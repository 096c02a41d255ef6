"""What every subject needs.

Ids, times, policy, events, commands, validation, and the way of a command from the call to the commit.
"""
