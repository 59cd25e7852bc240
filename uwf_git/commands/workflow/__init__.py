"""Workflow files and the registry: put, validate, show, list, history, rollback, remove."""
