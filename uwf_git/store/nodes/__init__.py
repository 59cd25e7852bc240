"""Nodes as git blobs, and the `nodes/` folder of a commit's tree.

Promise: a node's name is checked against its content when it is written and when it is read.
"""
