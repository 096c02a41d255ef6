"""The files of documents that follow the log and that people edit, too."""
