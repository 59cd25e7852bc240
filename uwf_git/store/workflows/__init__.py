"""The workflow registry: refs/workflows/<name>, one commit per version.

Promise: a version is never rewritten; its tree holds the source files byte for byte, and the
closure of its Workflow node.
"""
