# SPDX-License-Identifier: Apache-2.0
# io: sample formats, sampler, prefetch, checkpoint files
