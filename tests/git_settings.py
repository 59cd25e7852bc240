"""Settings of git taken out again, as a person does who edits the file."""

from collections.abc import Container

from uwf_git.store.git.config import remove_values, rewrite_config


def remove_config(path: str, name: str, values: Container[str]) -> None:
    """Remove those *values* of *name* from the file at *path*."""
    rewrite_config(path, lambda text: remove_values(text, name, values))
