"""Decisions: pure functions from (workflow, history, state) to the next move, and texts."""
