"""Worktrees of branches: each works apart from the others, in the user's own repository.

Promise: no edit is lost. What a branch committed or left is at a ref of that repository before the
branch ends, and the worktree goes only after that. Whoever looks next finishes what was cut short.
"""
