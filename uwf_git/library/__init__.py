"""The library: tasks, for programs that use uwf. `uwf_git` exports its names.

Nothing here prints, ends the process or keeps state between two calls; an error is one of
`uwf_git.errors`.
"""
