# SPDX-License-Identifier: Apache-2.0
# backends/ref: plain C loops, the oracle
