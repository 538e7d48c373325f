# SPDX-License-Identifier: Apache-2.0
# net: layers and the graph
