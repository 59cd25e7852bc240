"""Tell `uwf plan` that this AI tool has stopped. Written by `uwf plan plugin`; changes are lost.

Only the standard library is used. Nothing is printed, and the exit status is 0 within 2 seconds
whatever happens: the tool goes on as if there were no hook.
"""

import json
import os
import socket
import threading
from contextlib import suppress
from datetime import UTC, datetime

STATE_FILE = "../../../.state/workflow.state.json"

MOST_BYTES = 1024 * 1024


def main() -> None:
    """Send the notice, and end this process."""
    last = threading.Timer(1.5, os._exit, [0])
    last.daemon = True
    last.start()
    # A tool that cannot write what it has to say gets a signal; a tool that never closes its end
    # must not be waited for.
    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    # Whatever goes wrong: a broken state file, nobody there.
    with suppress(BaseException):
        tell()
    with suppress(BaseException):
        reader.join(0.5)
    os._exit(0)


def drain() -> None:
    """Read standard input to its end."""
    with suppress(BaseException):
        while os.read(0, 65536):
            pass


def tell() -> None:
    """Send a notice to whoever drives, if a tool is to be at work there."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, STATE_FILE), "rb") as file:
        state = json.loads(file.read(MOST_BYTES).decode("utf-8-sig"))
    if state["phase"] not in ("planning", "executing"):
        return
    notice = {
        "type": "stop",
        "phase": state["phase"],
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    for key, name in (("thread", "UWF_THREAD_ID"), ("head", "UWF_HEAD")):
        if os.environ.get(name):
            notice[key] = os.environ[name]
    address = (state.get("address") or "127.0.0.1", state["port"])
    with socket.create_connection(address, timeout=1) as connection:
        connection.sendall(json.dumps(notice).encode() + b"\n")
        connection.recv(1024)


if __name__ == "__main__":
    main()
