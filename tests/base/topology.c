/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c -- how many threads compute when nobody says: OpenMP's own variable first, then the cores. */
#include "base/topology.h"
#include "tests/tap.h"

#include <stdlib.h>

static void said(const char *value, int want)
{
    if (value)
        setenv("OMP_NUM_THREADS", value, 1);
    else
        unsetenv("OMP_NUM_THREADS");
    tap_ok(hl_default_threads() == want, "OMP_NUM_THREADS %s: %d threads", value ? value : "unset", hl_default_threads());
}

int main(void)
{
    int cores = hl_usable_cores();
    tap_ok(cores >= 1, "at least one core");
    char processor[96] = "";
    hl_processor_name(processor, sizeof(processor));
    tap_ok(*processor && *processor != ' ', "the processor has a name: %s", processor);
    said(NULL, cores);
    said("7", 7);
    said("3,2", 3); /* nested levels: the outermost counts */
    said("0", cores);
    said("many", cores);
    said("-4", cores);
    return tap_done();
}
