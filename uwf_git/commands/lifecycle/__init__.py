"""A thread begins, is forked, is removed: start, fork, rm."""
