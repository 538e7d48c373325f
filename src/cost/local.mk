# SPDX-License-Identifier: Apache-2.0
# cost: what operations and messages cost
