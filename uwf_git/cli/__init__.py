"""The command line: the only click, the only print, the only environment."""
