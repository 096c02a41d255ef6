"""Everything that touches the world around AOF: the command line, the clock."""
