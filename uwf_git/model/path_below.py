"""Paths of files below a work directory, as a workflow may name them."""


def check_path_below(path: str) -> str | None:
    """Return why *path* cannot name a file below a directory, or None; links are not known here."""
    parts = path.split("/")
    if not path.strip() or any(ord(each) < ord(" ") for each in path):
        return "names no file"
    if path.startswith(("/", "~")):
        return "has to be relative to the work directory"
    if ".." in parts:
        return "leads out of the work directory"
    if any(part.lower() == ".git" for part in parts):
        return "is git's own"
    if parts[-1] in ("", "."):
        return "names no file"
    return None
