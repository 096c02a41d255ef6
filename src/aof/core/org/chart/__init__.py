"""The org chart as people write it: what its values may be, and what is wrong with one."""
