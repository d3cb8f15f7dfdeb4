#!/usr/bin/env bash
# Write constraints.txt: every package of every extra, direct or not, at one version.
#
# Called by `make lock`. The resolver lives in a throwaway environment; the result names no index,
# so that every machine uses its own. Resolved for the oldest supported Python.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
{
    echo "# Versions that were tested together. Written by \`make lock\`; do not edit."
    "$work/venv/bin/uv" pip compile --quiet --upgrade \
        --python-version 3.11 --python-platform linux \
        --all-extras --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
        pyproject.toml
} >"$work/constraints.txt"
mv "$work/constraints.txt" constraints.txt
