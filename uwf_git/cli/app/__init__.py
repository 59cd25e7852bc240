"""The frame of every command: options, verbs, help, errors, exit status.

Promise: an error is one line and a hint; a bug leaves a log file and exit status 70.
"""
