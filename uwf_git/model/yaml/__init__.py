"""YAML as workflow files use it: read with positions and limits, written readably."""
