"""Agents: start, watch and stop the processes that play roles. The only subprocess door.

An agent's process group outlives its engine. Output and exit status are in files, from which the
next engine takes them.
"""
