"""What the application needs from the outside world, as contracts without any implementation."""
