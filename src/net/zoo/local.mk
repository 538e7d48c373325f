# SPDX-License-Identifier: Apache-2.0
# net/zoo: the named networks
