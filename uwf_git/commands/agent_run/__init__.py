"""An agent process for each turn: run it, wait for an orphaned agent, stop it, mask its output.

Finished work survives the death of the engine; no turn has two agents at once.
"""
