#!/usr/bin/env bash
# Get what the tests of pictures, reports and the page need besides `.[test]`: Playwright for the Python
# that is named (by default .venv/bin/python); as root on Debian, chromium; with npm,
# Mermaid and axe-core.
#
#   tests/browser/install.sh .venv/bin/python
#
# Playwright downloads no browser. What npm gets goes below build/browser of this checkout. What cannot
# be had is named, and its tests are skipped.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${1:-$root/.venv/bin/python}
into=$root/build/browser
mermaid=mermaid@11.12.0
axe=axe-core@4.14.1

missing() {
    echo "tests/browser/install.sh: no $1, so its tests are skipped" >&2
}

"$python" -m pip install --quiet --disable-pip-version-check 'playwright>=1.50' || missing Playwright

wanted=()
command -v chromium >/dev/null || wanted+=(chromium fonts-dejavu-core)
if [[ ${#wanted[@]} -gt 0 ]]; then
    if [[ $(id -u) = 0 && -e /etc/debian_version ]]; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            "${wanted[@]}" >/dev/null || missing "${wanted[*]}"
    else
        missing "${wanted[*]}"
    fi
fi

# One file of each package is all that a page needs.
fetch_file() { # PACKAGE FILE NAME: from npm
    [[ -e $into/${2##*/} ]] && return
    mkdir -p "$into"
    if command -v npm >/dev/null && (cd "$into" && npm pack --silent "$1" >/dev/null); then
        tar -xzf "$into"/"${1%@*}"-*.tgz -C "$into" --transform 's,.*/,,' "package/$2"
        rm -f "$into"/"${1%@*}"-*.tgz
    else
        missing "$3"
    fi
}

fetch_file "$mermaid" dist/mermaid.min.js Mermaid
fetch_file "$axe" axe.min.js axe-core
