"""The library: tasks for programs that have uwf for a part.

Owns: the names that `uwf_git` gives away. Knows nothing of: command lines.
Always true: nothing here prints, ends the process or keeps anything between two calls; an error is
one of `uwf_git.errors`.
"""
