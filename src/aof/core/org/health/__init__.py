"""Who of the chart can be reached."""
