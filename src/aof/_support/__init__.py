"""Small tools without a subject that every layer may use. Must not know AOF."""
