"""The store in a data directory: plain files for people, a log as the commit point, an index as a cache."""
