# SPDX-License-Identifier: Apache-2.0
# perf: calibration and scaling
