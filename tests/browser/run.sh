#!/usr/bin/env bash
# Optional suite: the report and `repro ui` in headless Chromium. Needs node, npm, python3 and chromium; says so and skips otherwise.
# usage: run.sh [REPRO_BINARY] [FOLDER_FOR_PICTURES]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repro=${1:-$here/../../target/release/repro}
skip() { echo "skipped: browser tests need $1"; exit 0; }
command -v node >/dev/null || skip "node"
command -v npm >/dev/null || skip "npm"
command -v python3 >/dev/null || skip "python3"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$chromium" ] || skip "chromium (Debian's package of that name)"
[ -x "$repro" ] || skip "a built repro at $repro (cargo build --release)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here"/*.mjs "$work"
(cd "$work" && npm install --no-audit --no-fund --silent) || skip "playwright-core and axe-core from the npm registry"
unset REPRO_PROFILE REPRO_STORE
REPRO=$(realpath "$repro") CHROMIUM=$chromium PROJECT=$here/project.py PAPER=$here/../.. PICTURES=${2:-} node "$work/test.mjs"
