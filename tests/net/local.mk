# SPDX-License-Identifier: Apache-2.0
# tests of net
