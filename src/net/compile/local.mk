# SPDX-License-Identifier: Apache-2.0
# net/compile: from graph to program, one file per pass
