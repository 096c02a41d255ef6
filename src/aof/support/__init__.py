"""Small tools without a subject."""
