"""Rules of jobs: when they are due, and what they make."""
