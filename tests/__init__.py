"""The tests of AOF. Their folders mirror `src/aof`; `requirements` holds what they must prove."""
