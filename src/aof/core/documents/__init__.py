"""The rules of documents: who may say what in them. Must not know how a document is written down."""
