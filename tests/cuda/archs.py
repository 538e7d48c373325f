# SPDX-License-Identifier: Apache-2.0
"""The targets in the device code of a library, as "sm_80 sm_90 ptx_90": fat binaries begin with a magic number and hold entries with sizes."""
import struct
import sys

MAGIC = b"\x50\xed\x55\xba"
PTX, KINDS = 1, (1, 2, 8, 16, 32, 64)


def targets(data):
    found = set()
    start = data.find(MAGIC)
    while start >= 0:
        header, size = struct.unpack_from("<HQ", data, start + 6)
        at, end = start + header, start + header + size
        while at + 32 <= min(end, len(data)):
            kind, _, entry, length = struct.unpack_from("<HHIQ", data, at)
            if kind not in KINDS or entry > 4096:
                break
            found.add(("ptx_%d" if kind == PTX else "sm_%d") % struct.unpack_from("<I", data, at + 28)[0])
            at += entry + length
        start = data.find(MAGIC, start + 16)
    return found


with open(sys.argv[1], "rb") as f:
    print(" ".join(sorted(targets(f.read()))))
