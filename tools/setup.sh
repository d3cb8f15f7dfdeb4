#!/usr/bin/env bash
# Create .venv with everything Tidegate needs, or say in one line what is missing.
#
# Called by `make setup`. Checks what is cheap to check (Python, Java) before the long download, and
# touches the stamp file last, so that an interrupted run is done again.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/.stamp
log=$venv/setup.log

fail() {
    echo "setup: $*" >&2
    exit 1
}

is_new_enough_python() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
        if is_new_enough_python "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is missing (tried: ${PYTHON:-python3.11 python3.12 python3.13 python3});" \
        "install it or name it: make PYTHON=/path/to/python3.11"
}

# Spark prefers JAVA_HOME over PATH, so the same one is checked here.
check_java() {
    local java=java version
    if [[ -n ${JAVA_HOME:-} ]]; then
        java=$JAVA_HOME/bin/java
    fi
    version=$("$java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p') || true
    if [[ -z $version ]]; then
        fail "Java 17 or newer is missing ($java does not run); install a JDK 17 and put it on PATH" \
            "or point JAVA_HOME to it"
    elif ((version < 17)); then
        fail "Java 17 or newer is missing ($java is older); install a JDK 17 and put it on PATH" \
            "or point JAVA_HOME to it"
    fi
}

create_venv() {
    rm -rf "$venv"
    mkdir "$venv"
    "$1" -m venv "$venv" >"$log" 2>&1 ||
        fail "$1 cannot create a virtual environment; install its venv module (Debian, Ubuntu:" \
            "python3-venv); details in $log"
}

install_packages() {
    "$venv/bin/python" -m pip install --no-input --disable-pip-version-check \
        -c constraints.txt -e '.[all,dev]' >"$log" 2>&1 ||
        fail "pip could not install the packages; check that the package index can be reached" \
            "(network, proxy, PIP_INDEX_URL) and run again; details in $log"
}

trap 'fail "interrupted; run it again"' INT TERM
python=$(find_python)
check_java
rm -f "$stamp"
echo "setup: installing into $venv (the first time takes some minutes)" >&2
if ! is_new_enough_python "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    create_venv "$python"
fi
install_packages
touch "$stamp"
