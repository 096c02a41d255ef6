"""Documents after a merge by git: rewritten from the log, with what people wrote on either side."""
