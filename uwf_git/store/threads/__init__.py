"""Threads in git: heads, snapshots, history, recording, locks, machine-local files.

Promise: a head moves only to a descendant; archive wins where both refs exist.
"""
