# SPDX-License-Identifier: Apache-2.0
# backend: the generic side of the backend contract
