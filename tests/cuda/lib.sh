# SPDX-License-Identifier: Apache-2.0
# lib.sh -- the cuda backend on the simulated device: HALO_MODULES points at the module that is linked with it. Sourced, with the test's name in $1.
if [ -n "${CUDASIM_ABSENT:-}" ]; then
    echo "1..0 # SKIP no simulated device: ${CUDASIM_MISSING:-}"
    exit 0
fi
# Races and lost memory of this program's own are what the simulator looks for; a preloaded checker is not in its way
HALO_MODULES=${HALO_MODULES:-$top_builddir/tests/cudasim/.libs} HALO_SUBJECT=cuda
export HALO_MODULES HALO_SUBJECT
. "$top_srcdir/tests/cli/lib.sh"
# tally NAME WORD...: a conformance run's own verdicts become one claim
conform() {
    name=$1
    shift
    run "$@"
    ok "$name: $(grep -c '^ok' out) kinds of operations agree with the reference$(grep '^not ok' out | head -n 3 | sed 's/^not ok [0-9]*//')" conforming
}
conforming() { [ "$code" -eq 0 ] && grep -q '^ok' out && ! grep -q '^not ok' out && ! grep -q 'RACE\|FATAL' err; }
