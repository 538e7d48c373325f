# SPDX-License-Identifier: Apache-2.0
# backends/cpu: oneDNN, own kernels per instruction set (AM_CONDITIONALs BACKEND_CPU, HAVE_KERN_AVX2, HAVE_KERN_AVX512F, HAVE_ONEDNN)
