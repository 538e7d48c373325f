# SPDX-License-Identifier: Apache-2.0
# optim: optimisers and schedules
