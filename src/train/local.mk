# SPDX-License-Identifier: Apache-2.0
# train: the loop, evaluation, metrics, run log
