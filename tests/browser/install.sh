#!/bin/sh
# Get what the tests marked `browser` need: Playwright for the Python that is given (or the one on the
# PATH), and, as root on Debian, chromium. Nothing is downloaded by Playwright itself.
#
#     tests/browser/install.sh .venv/bin/python
set -eu
python=${1:-python3}
"$python" -m pip install --quiet "playwright>=1.50"
if command -v chromium >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "tests/browser/install.sh: no chromium; install it (Debian: apt-get install chromium)" >&2
    exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    chromium fonts-dejavu-core >/dev/null
