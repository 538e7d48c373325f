# SPDX-License-Identifier: Apache-2.0
# isa.awk -- reads what `objdump -d -w --insn-width=16` says and prints every instruction that the set named by
# -v set=generic|avx2|avx512f does not have, as "function: why: instruction", and a last line "N instructions, M fused".
#
#   generic  x86-64 as it began: SSE2, nothing that starts with v (VEX and EVEX), nothing of SSE3 and later
#   avx2     AVX2, FMA and what came before: no EVEX encoding, no mask registers
#   avx512f  AVX-512 F, CD, ER, PF (Knights Landing) and the same base: EVEX instructions are allowed by name and by vector length. Bits 6:5 of the
#            fourth byte of an EVEX instruction are the length, 10 for 512 bits; anything shorter needs VL, scalars (whose length counts for
#            nothing) and embedded rounding (where the bits are the mode) apart.
# Names and feature sets: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, column "CPUID Feature Flag".

function matches(text, list) { return text ~ ("^(" list ")$") }

BEGIN {
    FS = "\t"
    fp = "(ps|pd|ss|sd)"
    scalar = "v(add|sub|mul|div|max|min|sqrt|cmp[a-z_]*|f?n?m(add|sub)[123]+|fn?m(add|sub)[123]+|getexp|getmant|fixupimm|rcp14|rsqrt14|rcp28|rsqrt28|rndscale|scalef|mov)s[sd]" \
        "|vu?comis[sd]|vcvtt?s[sd]2u?si[lq]?|vcvtu?si2s[sd][lq]?|vcvtss2sd|vcvtsd2ss|vmovd|vmovq|vextractps|vinsertps|vmov[hl]p[sd]|vmovhlps|vmovlhps"
    f = scalar "|v(add|sub|mul|div|max|min|sqrt)p[sd]|vf(n?m(add|sub)|maddsub|msubadd)(132|213|231)p[sd]|valign[dq]|vblendmp[sd]" \
        "|vbroadcast(ss|sd|[fi]32x4|[fi]64x4)|vcmp[a-z_]*p[sd]|vcompressp[sd]|vexpandp[sd]" \
        "|vcvt(dq2p[sd]|pd2(dq|ps|udq)|ph2ps|ps2(dq|pd|ph|udq)|tp[sd]2u?dq|udq2p[sd])" \
        "|vextract[fi](32x4|64x4)|vinsert[fi](32x4|64x4)|vfixupimmp[sd]|v(gather|scatter)[dq]p[sd]|vp(gather|scatter)[dq][dq]" \
        "|vgetexpp[sd]|vgetmantp[sd]|vmov[au]p[sd]|vmovddup|vmovdq[au](32|64)|vmovntdqa?|vmovntp[sd]|vmovs[hl]dup" \
        "|vp(abs|add|sub|and|andn|or|xor|max[su]|min[su]|blendm|broadcast|compress|expand|ternlog|testn?m|ro[lr]v?|sllv?|srlv?|srav?|cmp[a-z]*)[dq]" \
        "|vperm(i2|t2)?(d|q|ps|pd)|vpermilp[sd]|vpmov(s|us)?(db|dw|qb|qw|qd)|vpmov[sz]x(bd|bq|wd|wq|dq)|vpmuldq|vpmulld|vpmuludq|vpshufd" \
        "|vpunpck[hl](dq|qdq)|v(rcp14|rsqrt14|rndscale|scalef)p[sd]|vshuf[fi](32x4|64x2)|vshufp[sd]|vunpck[hl]p[sd]"
    cd = "vpconflict[dq]|vplzcnt[dq]|vpbroadcastm(b2q|w2d)"
    er = "vexp2p[sd]|v(rcp28|rsqrt28)p[sd]"
    pf = "v(gather|scatter)pf[01][dq]p[sd]"
    masks = "k(and|andn|mov|not|or|ortest|shiftl|shiftr|xnor|xor)w|kunpckbw"
    # in the VEX encoding too, but younger than Knights Landing
    young = "vpdp[a-z]*|vpmadd52[a-z]*|vcvtne[a-z0-9]*|vaes.*|vpclmul.*|vgf2p8.*|vsha.*|vsm[34].*"
    # SSE3, SSSE3, SSE4, and integers of the years of AVX. tzcnt is left out: an old processor runs it as bsf, and compilers rely on that.
    newer = "addsubp[sd]|h(add|sub)p[sd]|lddqu|movddup|movs[hl]dup|pabs[bwd]|palignr|ph(add|sub)s?[wd]|pmaddubsw|pmulhrsw|pshufb|psign[bwd]|p?blend[a-z]*" \
        "|dpp[sd]|extractps|insertps|movntdqa|mpsadbw|packusdw|pcmpeqq|pextr[bdq]|phminposuw|pinsr[bdq]|pmax(sb|sd|ud|uw)|pmin(sb|sd|ud|uw)|pmov[sz]x[a-z]*" \
        "|pmuldq|pmulld|ptest|round[ps][sd]|crc32[bwlq]?|pcmp[ei]str[im]|pcmpgtq|popcnt[wlq]?|lzcnt[wlq]?|andn|bextr|bls[ir]|blsmsk|bzhi|mulx|pdep|pext" \
        "|rorx|s[ah][rl]x|movbe[wlq]?|aes[a-z]*|pclmul[a-z]*|sha[12].*|v(add|sub|mul|div|mov|p|fn?m|broadcast|cvt|extract|insert|gather|max|min|sqrt|and|or|xor|zero|blend|shuf|unpck|perm|cmp|u?comi|test|round|ptest|ld|st|rcp|rsqrt).*"
}

/^[0-9a-f]+ <.*>:$/ { where = $1; sub(/^[0-9a-f]+ </, "", where); sub(/>:$/, "", where) }

function refuse(why) { print where ": " why ": " text }

NF >= 3 && $1 ~ /^ *[0-9a-f]+:$/ {
    text = $3
    sub(/ +$/, "", text)
    rest = text
    sub(/^(\{evex\}|\{vex3?\}|rep[nz]*|lock|notrack|bnd|data16|cs|ds|es|addr32) +/, "", rest)
    name = rest
    sub(/[ \t].*/, "", name)
    bytes = $2
    sub(/^ +/, "", bytes)
    while (bytes ~ /^(67|2e|3e|64|65) /) sub(/^.. /, "", bytes)
    count++
    if (name ~ /^vfn?m(add|sub)/) fused++
    evex = bytes ~ /^62 /
    mask = text ~ /%k[0-7]/
    if (set == "generic") {
        if (evex || text ~ /%[yz]mm/ || mask || matches(name, newer)) refuse("newer than SSE2")
    } else if (!evex && matches(name, young)) refuse("younger than the set")
    else if (set == "avx2") {
        if (evex || mask || text ~ /%zmm/) refuse("AVX-512")
    } else if (!evex) {
        if (mask && !matches(name, masks)) refuse("mask operation outside F")
    } else {
        length_bits = substr(bytes, 10, 1)
        if (!matches(name, f "|" cd "|" er "|" pf)) refuse("outside F, CD, ER, PF")
        else if (length_bits !~ /[45cd]/ && text !~ /sae\}/ && !matches(name, scalar)) refuse("needs VL")
    }
}

END { print count + 0 " instructions, " fused + 0 " fused" }
