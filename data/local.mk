# SPDX-License-Identifier: Apache-2.0
# data
EXTRA_DIST += data/universes/README data/universes/train/universes.h5 data/universes/val/universes.h5 data/universes/test/universes.h5
