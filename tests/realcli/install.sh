#!/usr/bin/env bash
# Get the agent programs that tests/realcli drives, each in the version that was recorded.
#
#   tests/realcli/install.sh claude codex gemini
#   tests/realcli/install.sh                        all eight: some 3 GB, a few minutes
#
# They go below $UWF_REALCLI, by default build/realcli of this checkout, which is also where the
# tests look for them; nothing else is touched, and nobody has to log in: the tests bring a model
# along. npm and Node 20 or newer are needed for the first six, and a Python from 3.11 to 3.12
# ($PYTHON, by default python3) for aider and hermes.
set -euo pipefail

into=${UWF_REALCLI:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/realcli}
all=(claude codex gemini opencode copilot qwen aider hermes)

# The platform as npm's packages name it.
platform() {
    local system machine
    system=$(uname -s | tr '[:upper:]' '[:lower:]')
    machine=$(uname -m)
    case $machine in x86_64) machine=x64 ;; aarch64) machine=arm64 ;; esac
    echo "$system-$machine"
}

# An environment of its own for each: they pin what they stand on, differently.
get_from_pypi() {
    local name=$1 package=$2
    [[ -x $into/$name/bin/pip ]] || "${PYTHON:-python3}" -m venv "$into/$name"
    "$into/$name/bin/pip" install --quiet --disable-pip-version-check "$package"
    ln -sf "../$name/bin/$name" "$into/bin/$name"
}

# Where the newest release wants another Node, npm takes an older one without a word: so the
# versions are exact. The packages' own scripts are not run, but for the two that put the program
# for this platform in its place.
get_from_npm() {
    npm install --prefix "$into" --save-exact --no-audit --no-fund --ignore-scripts \
        --fetch-retries=1 --fetch-timeout=60000 --loglevel=error "$@"
    put_in_place @anthropic-ai/claude-code install.cjs
    put_in_place opencode-ai postinstall.mjs
}

put_in_place() {
    [[ ! -d $into/node_modules/$1 ]] || (cd "$into/node_modules/$1" && node "$2")
}

# qwen wants Node 22, which it gets for itself alone.
node=node-$(platform)
wrap_qwen() {
    cat >"$into/bin/qwen" <<EOF
#!/bin/sh
exec "$into/node_modules/$node/bin/node" "$into/node_modules/.bin/qwen" "\$@"
EOF
    chmod +x "$into/bin/qwen"
}

mkdir -p "$into/bin"
packages=()
for name in "${@:-${all[@]}}"; do
    case $name in
        claude) packages+=(@anthropic-ai/claude-code@2.1.329) ;;
        codex) packages+=(@openai/codex@0.169.0) ;;
        gemini) packages+=(@google/gemini-cli@0.61.0) ;;
        opencode) packages+=(opencode-ai@1.18.33) ;;
        copilot) packages+=(@github/copilot@1.0.102) ;;
        qwen) packages+=("$node@22.23.3" @qwen-code/qwen-code@0.24.4) && wrap_qwen ;;
        aider) get_from_pypi aider aider-chat==0.86.2 ;;
        hermes) get_from_pypi hermes "hermes-agent[acp]==0.19.0" ;;
        *) echo "install.sh: no such program: $name; there are ${all[*]}" >&2 && exit 2 ;;
    esac
done
[[ ${#packages[@]} -eq 0 ]] || get_from_npm "${packages[@]}"
echo "installed below $into: ${*:-${all[*]}}"
