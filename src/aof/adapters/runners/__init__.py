"""What executes runs."""
