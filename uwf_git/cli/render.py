"""Results: one document on standard output.

Owns: the choice of a rendering by the session's format; the only way a verb prints.
Knows nothing of: what is in a document.
Always true: one call, one document; it reaches the reader whatever its characters and the locale.
"""

from collections.abc import Callable
from typing import Any

from uwf_git.cli.settings import Session
from uwf_git.cli.streams import stdout_is_utf8, write_stderr, write_stdout
from uwf_git.cli.visible import one_line, visible_block


def emit(session: Session, document: Any, *, text: Callable[[Any], str] | None = None) -> None:
    """Print *document*, which must be JSON, as the session's format says.

    *text* renders it for people in place of the general way, when the format is text. What it
    gives may hold text from agents as it is: controls are spelled out here.

    Raises:
        ReaderGone: nobody reads standard output any more.
        OutputFailed: standard output would not take it.
    """
    write_stdout(_render(session, document, text))


def note(message: str) -> None:
    """Tell a person one line on standard error; never fails."""
    write_stderr(one_line(message) + "\n")


def _render(session: Session, document: Any, text: Callable[[Any], str] | None) -> str:
    # Each format's module is imported by those who asked for it.
    if session.output_format == "json":
        from uwf_git.cli.json_text import render_json  # noqa: PLC0415 (see above)

        return render_json(document, pretty=session.stdout_is_tty, ascii_only=not stdout_is_utf8())
    if session.output_format == "yaml":
        from uwf_git.model.yaml_render import render_yaml  # noqa: PLC0415 (see above)

        return render_yaml(document)
    if text is not None:
        return _ended(visible_block(text(document)))
    from uwf_git.cli.render_text import render_text  # noqa: PLC0415 (see above)

    return render_text(document, width=session.text_width())


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
