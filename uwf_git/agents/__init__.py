"""Agents: the only place that starts processes."""
