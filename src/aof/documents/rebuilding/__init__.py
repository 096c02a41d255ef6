"""Documents after a merge by git: written anew from the log, with what people wrote on either side."""
