"""The command line: one file per command, with options, one call into the library, and printing."""
