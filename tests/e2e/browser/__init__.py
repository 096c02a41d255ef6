"""The page for people, in a real browser, on a real service and a real data directory."""
