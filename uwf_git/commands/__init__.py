"""Commands: what each verb does, without a terminal: load, decide, act, record.

A room is one capability. Errors are `uwf_git.errors`; nothing here prints or reads the environment.
"""
