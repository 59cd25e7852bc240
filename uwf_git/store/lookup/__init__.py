"""Find a node by its hash alone: roots, the lookup index, refs/cas/nodes.

Promise: a node is found as long as any ref keeps it undamaged. The index only says which refs to
search; nodes are read from git and checked.
"""
