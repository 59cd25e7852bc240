"""Print results: one document on standard output, in the session's format."""

from collections.abc import Callable
from typing import Any

from uwf_git.cli.output.screen import Painted
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import stdout_is_utf8, write_stderr, write_stdout
from uwf_git.model.text import one_line, visible_block


def emit(
    session: Session,
    document: Any,
    *,
    text: Callable[[Any], str] | None = None,
    none: str | None = None,
) -> None:
    """Print *document*, which must be JSON, in the session's format.

    *text* formats it for people instead of `render_text`. Its result may hold text of agents as it
    is: controls are escaped here, unless it is `Painted`. *none* is what
    people are told if the document is empty, on standard error.
    """
    write_stdout(_render(session, document, text))
    if none is not None and not document and session.output_format == "text":
        note(none)


def note(message: str) -> None:
    """Write one line for a person to standard error; never fails."""
    write_stderr(one_line(message) + "\n")


def _render(session: Session, document: Any, text: Callable[[Any], str] | None) -> str:
    # Each format's module is imported only where that format is requested.
    if session.output_format == "json":
        from uwf_git.cli.output.json_text import render_json  # noqa: PLC0415 (see above)

        return render_json(document, pretty=session.stdout_is_tty, ascii_only=not stdout_is_utf8())
    if session.output_format == "yaml":
        from uwf_git.model.yaml.render import render_yaml  # noqa: PLC0415 (see above)

        return render_yaml(document)
    if text is not None:
        told = text(document)
        return _ended(told if isinstance(told, Painted) else visible_block(told))
    from uwf_git.cli.output.table import render_text  # noqa: PLC0415 (see above)

    return render_text(document, width=session.text_width())


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
