# SPDX-License-Identifier: Apache-2.0
# doc: pages, installed beside README
dist_doc_DATA += doc/cuda.md doc/diffraction.md doc/formats.md doc/from-pytorch.md doc/networks.md doc/parallel.md doc/pitfalls.md \
	doc/performance.md doc/running.md doc/synth.md
