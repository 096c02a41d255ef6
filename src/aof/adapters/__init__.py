"""Everything that meets the world around AOF: the command line, servers, runners, notifiers, the clock."""
