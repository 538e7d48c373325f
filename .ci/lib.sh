# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# lib.sh -- what .ci/run and .ci/full share: stages with their times, and totals taken from what Automake's test driver printed.
# Sourced by a shell that stands at the top of the source tree.

top=$PWD
out=${HALO_CI:-$top/build-ci}
jobs=$(nproc 2>/dev/null || echo 2)
began=$(date +%s)
mkdir -p "$out"
: >"$out/totals"
: >"$out/failed"

# The collection of other people's files lies beside the repository where it exists; builds elsewhere must still find it
if [ -z "${HALO_TESTDATA:-}" ] && [ -d "$top/../shared/testdata" ]; then
    HALO_TESTDATA=$(cd "$top/../shared/testdata" && pwd)
    export HALO_TESTDATA
fi

# stage NAME COMMAND...: runs it with its output in a log; its test totals are added up; a failure is told at once and remembered
stage() {
    name=$1
    shift
    start=$(date +%s)
    printf -- '-- %s ...\n' "$name"
    log=$out/$name.log
    if "$@" >"$log" 2>&1; then verdict=good; else verdict=FAILED; fi
    counts=$(count "$log")
    echo "$counts" >>"$out/totals"
    # shellcheck disable=SC2086
    set -- $counts
    if [ $verdict = FAILED ]; then
        # what failed before or beside the tests is one failure, so that it shows in the last line
        [ "$2" -gt 0 ] || echo "0 1 0" >>"$out/totals"
        grep -E '^(FAIL|XPASS|ERROR):|error:|Error [0-9]|: \*\*\*' "$log" | grep -Ev '^(PASS|SKIP|XFAIL):' | head -n 40
        tail -n 15 "$log"
        grep -E '^(FAIL|XPASS|ERROR):' "$log" | sed "s/^/$name: /" >>"$out/failed"
        told "$log" >>"$out/failed"
    fi
    now=$(date +%s)
    printf -- '-- %s: %s, %s s (of %s s); %s passed, %s failed, %s skipped\n' "$name" $verdict $((now - start)) $((now - began)) "$1" "$2" "$3"
}

# told LOG: what the tests that failed in LOG had to say for themselves
told() {
    sed -n 's/^\(FAIL\|ERROR\): \([^ ]*\)\.test.*/\2.log/p' "$1" | sort -u | while read -r test; do
        find "$out" -path "*/$test" | while read -r file; do
            echo "$file:"
            grep -A 8 '^not ok' "$file" | tail -n 30
            tail -n 5 "$file"
        done
    done
}

# count LOG: "passed failed skipped" over all test summaries in LOG
count() {
    awk '
        /^# PASS: / || /^# XFAIL:/ { passed += $3 }
        /^# FAIL: / || /^# XPASS:/ || /^# ERROR:/ { failed += $3 }
        /^# SKIP: / { skipped += $3 }
        END { print passed + 0, failed + 0, skipped + 0 }' "$1"
}

# configured DIRECTORY OPTION...: configures and builds in $out/DIRECTORY
configured() {
    build=$out/$1
    shift
    mkdir -p "$build"
    (cd "$build" && "$top/configure" --enable-werror "$@") && make -C "$build" -j "$jobs"
}

# checked TARGET DIRECTORY OPTION...: the same, then make TARGET
checked() {
    target=$1
    shift
    configured "$@" && make -C "$build" -j "$jobs" "$target"
}

# finish: what failed, where a reader of the end alone will see it; the last line, and the exit status
finish() {
    tail -n 100 "$out/failed"
    awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' "$out/totals"
}
