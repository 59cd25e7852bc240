"""Agents that ship with uwf, one file each."""
