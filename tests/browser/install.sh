#!/usr/bin/env bash
# Get what the tests of pictures and reports need besides `.[test]`: Playwright for the Python that is
# named (by default .venv/bin/python); as root on Debian, chromium and Graphviz; with npm, Mermaid.
#
#   tests/browser/install.sh .venv/bin/python
#
# Playwright downloads no browser. Mermaid goes below build/browser of this checkout. What cannot be
# had is named, and its tests are skipped.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${1:-$root/.venv/bin/python}
into=$root/build/browser
mermaid=mermaid@11.12.0

missing() {
    echo "tests/browser/install.sh: no $1, so its tests are skipped" >&2
}

"$python" -m pip install --quiet --disable-pip-version-check 'playwright>=1.50' || missing Playwright

wanted=()
command -v chromium >/dev/null || wanted+=(chromium fonts-dejavu-core)
command -v dot >/dev/null || wanted+=(graphviz)
if [[ ${#wanted[@]} -gt 0 ]]; then
    if [[ $(id -u) = 0 && -e /etc/debian_version ]]; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            "${wanted[@]}" >/dev/null || missing "${wanted[*]}"
    else
        missing "${wanted[*]}"
    fi
fi

# One file of the package is all that a page needs.
if [[ ! -e $into/mermaid.min.js ]]; then
    mkdir -p "$into"
    if command -v npm >/dev/null && (cd "$into" && npm pack --silent "$mermaid" >/dev/null); then
        tar -xzf "$into"/mermaid-*.tgz -C "$into" --strip-components=2 package/dist/mermaid.min.js
        rm -f "$into"/mermaid-*.tgz
    else
        missing Mermaid
    fi
fi
