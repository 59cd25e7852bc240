"""The fake model, served in threads of the test's own process."""

import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from realcli.fake_model_server import Server, Wire

MODEL = "fake-model"

ASIDE = "A title"
"""The answer to requests without tools, such as for a title; they are not part of the script."""


class Served(NamedTuple):
    """The fake model while it is served."""

    url: str
    bodies: list[dict[str, Any]]
    """The whole requests."""


@contextmanager
def serve(*turns: dict[str, Any], aside: str | None = ASIDE) -> Iterator[Served]:
    """Serve a model that follows a script (fake_model_server.py).

    Without *aside*, requests without tools follow it as well.
    """
    server = Server(
        Namespace(port=0, model=MODEL, turns=list(turns), aside=aside, aside_none=aside is None)
    )
    served = Served(f"http://127.0.0.1:{server.server_address[1]}", [])

    class Noting(Wire):
        def note(self, **fields: Any) -> None:
            if "body" in fields:
                served.bodies.append(fields["body"])

    server.RequestHandlerClass = Noting
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield served
    finally:
        server.stop.set()
        server.shutdown()
        thread.join()
        server.server_close()
