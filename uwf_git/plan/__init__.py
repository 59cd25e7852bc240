"""Plans: plan files, the reports on them, the state that people and hooks see, the stop notices.

Promise: nothing here decides what a thread does, and nothing here is the truth. Plan files and work
are on the disk and in git, the rest is in the thread; what this room writes can be deleted.
It runs on Windows too (tests/hygiene.py), where the engine does not.
"""
