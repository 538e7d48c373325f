# SPDX-License-Identifier: Apache-2.0
# comm: everything that speaks MPI
