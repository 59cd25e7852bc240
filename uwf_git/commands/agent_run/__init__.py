"""One agent process for one turn: run it, wait for an orphaned one, stop it, mask its output.

Finished work survives the death of the engine; no turn has two agents at once.
"""
