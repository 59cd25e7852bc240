"""Drafts: workflows that an agent writes for a wish.

Promise: a draft that is found good is a valid workflow, names no command, and ends in a rehearsal.
"""
