# SPDX-License-Identifier: Apache-2.0
# lib.sh -- TAP for shell tests of the program; sourced, with the test's name in $1: work goes on in a directory of its own.
#   run COMMAND...          output in out, err; its code in $code
#   ok SENTENCE TEST...     a claim: the test's exit status
#   losses LOG, all_losses LOG   those of its steps; of its steps and validations
#   fails CODE TEXT NAME COMMAND...   the program refuses with that code and that text, once
set -u
fast=cpu # the fastest backend on processors of this build
grep -q '^#define HAVE_BACKEND_CPU 1' "$top_builddir/halo_build.h" || fast=ref
dir=$PWD/$1.dir
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || exit 1
count=0 failed=0

run() {
    "$@" >out 2>err
    code=$?
}

ok() {
    sentence=$1
    shift
    count=$((count + 1))
    if "$@"; then
        echo "ok $count - $sentence"
    else
        failed=$((failed + 1))
        echo "not ok $count - $sentence"
        sed 's/^/# err: /' err 2>/dev/null | tail -n 5
        sed 's/^/# out: /' out 2>/dev/null | tail -n 5
    fi
}

refused() { [ "$code" -eq "$1" ] && [ "$(grep -c 'error: ' err)" -eq 1 ] && grep -qF -- "$2" err; }

fails() {
    want=$1 text=$2 name=$3
    shift 3
    run "$@"
    ok "$name: $(grep error: err | head -n 1)" refused "$want" "$text"
}

skip() {
    count=$((count + 1))
    echo "ok $count - # SKIP $1"
}

# json FILE KEY: the first value of "KEY" in an object
json() { sed -n "s/.*\"$2\": \\(\"[^\"]*\"\\|[^,}]*\\).*/\\1/p" "$1" | head -n 1; }

losses() { sed -n 's/.*"event": "step".*"loss": \([^,]*\),.*/\1/p' "$1"; }
all_losses() { sed -n 's/.*"event": "\(step\|validation\)".*"loss": \([^,]*\),.*/\2/p' "$1"; }

finish() {
    echo "1..$count"
    cd .. || exit 1
    [ "$failed" -eq 0 ] && rm -rf "$dir"
    [ "$failed" -eq 0 ]
    exit
}
