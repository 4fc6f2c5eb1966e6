"""Programs for GPUs as PTX text, which the driver itself translates for the GPU that it has: no toolkit is needed.

`fill` and `check` write and compare memory: word i (64 bit) holds i xor a mask, so each word differs from every other.
`multiply` makes one number of a product in each thread. `differ` counts the words (32 bit) in which two areas differ.
`tensor` multiplies small matrices on the tensor cores again and again, with a sum that is known.
"""

HEAD = """
.version {version}
.target {target}
.address_size 64
"""
# What old drivers read, and what those to come may ask for instead.
DIALECTS = (("6.0", "sm_50"), ("7.8", "sm_75"))
TENSOR_DIALECTS = (("7.0", "sm_80"), ("8.0", "sm_90"))
# The number of this thread, and of all threads, in %d4 and %d6.
_INDEX = """
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %nctaid.x;
    mul.wide.u32 %d4, %r1, %r2;
    cvt.u64.u32 %d5, %r3;
    add.u64 %d4, %d4, %d5;
    mul.wide.u32 %d6, %r4, %r2;
"""
# Two words at a time: %d9 and %d10 are what they hold, %d11 is where.
_PAIR = """
    shl.b64 %d7, %d4, 1;
    or.b64 %d8, %d7, 1;
    xor.b64 %d9, %d7, %d3;
    xor.b64 %d10, %d8, %d3;
    shl.b64 %d11, %d4, 4;
    add.u64 %d11, %d1, %d11;
"""
FILL = f"""
.visible .entry fill(.param .u64 pp, .param .u64 pn, .param .u64 pm)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %d<12>;
    ld.param.u64 %d1, [pp];
    ld.param.u64 %d2, [pn];
    ld.param.u64 %d3, [pm];
    cvta.to.global.u64 %d1, %d1;
{_INDEX}
NEXT:
    setp.ge.u64 %p1, %d4, %d2;
    @%p1 bra DONE;
{_PAIR}
    st.global.v2.u64 [%d11], {{%d9, %d10}};
    add.u64 %d4, %d4, %d6;
    bra NEXT;
DONE:
    ret;
}}
"""
# The result: how many pairs are wrong, every bit that was, and the first pair.
CHECK = f"""
.visible .entry check(.param .u64 pp, .param .u64 pn, .param .u64 pm, .param .u64 pr)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %d<18>;
    ld.param.u64 %d1, [pp];
    ld.param.u64 %d2, [pn];
    ld.param.u64 %d3, [pm];
    ld.param.u64 %d15, [pr];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d15, %d15;
    mov.u64 %d16, 1;
{_INDEX}
NEXT:
    setp.ge.u64 %p1, %d4, %d2;
    @%p1 bra DONE;
{_PAIR}
    ld.global.v2.u64 {{%d12, %d13}}, [%d11];
    mov.u64 %d17, %d4;
    add.u64 %d4, %d4, %d6;
    xor.b64 %d12, %d12, %d9;
    xor.b64 %d13, %d13, %d10;
    or.b64 %d14, %d12, %d13;
    setp.eq.u64 %p1, %d14, 0;
    @%p1 bra NEXT;
    red.global.add.u64 [%d15], %d16;
    red.global.or.b64 [%d15+8], %d14;
    red.global.min.u64 [%d15+16], %d17;
    bra NEXT;
DONE:
    ret;
}}
"""
DIFFER = f"""
.visible .entry differ(.param .u64 pa, .param .u64 pb, .param .u64 pn, .param .u64 pr)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<7>;
    .reg .b64 %d<12>;
    ld.param.u64 %d1, [pa];
    ld.param.u64 %d2, [pb];
    ld.param.u64 %d3, [pn];
    ld.param.u64 %d7, [pr];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    cvta.to.global.u64 %d7, %d7;
    mov.u64 %d11, 1;
{_INDEX}
NEXT:
    setp.ge.u64 %p1, %d4, %d3;
    @%p1 bra DONE;
    shl.b64 %d8, %d4, 2;
    add.u64 %d9, %d1, %d8;
    add.u64 %d10, %d2, %d8;
    ld.global.u32 %r5, [%d9];
    ld.global.u32 %r6, [%d10];
    add.u64 %d4, %d4, %d6;
    setp.eq.u32 %p1, %r5, %r6;
    @%p1 bra NEXT;
    red.global.add.u64 [%d7], %d11;
    bra NEXT;
DONE:
    ret;
}}
"""
MULTIPLY = """
.visible .entry multiply(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{
    .reg .pred %p<3>;
    .reg .b32 %r<10>;
    .reg .f32 %f<4>;
    .reg .b64 %d<12>;
    ld.param.u64 %d1, [pa];
    ld.param.u64 %d2, [pb];
    ld.param.u64 %d3, [pc];
    ld.param.u32 %r1, [pn];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    cvta.to.global.u64 %d3, %d3;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    mul.lo.u32 %r6, %r1, %r1;
    setp.ge.u32 %p1, %r5, %r6;
    @%p1 bra DONE;
    div.u32 %r7, %r5, %r1;
    rem.u32 %r8, %r5, %r1;
    mul.wide.u32 %d4, %r1, 4;
    cvt.u64.u32 %d5, %r7;
    mul.lo.u64 %d6, %d5, %d4;
    add.u64 %d7, %d1, %d6;
    mul.wide.u32 %d8, %r8, 4;
    add.u64 %d9, %d2, %d8;
    mov.f32 %f1, 0f00000000;
    mov.u32 %r9, 0;
NEXT:
    ld.global.f32 %f2, [%d7];
    ld.global.f32 %f3, [%d9];
    fma.rn.f32 %f1, %f2, %f3, %f1;
    add.u64 %d7, %d7, 4;
    add.u64 %d9, %d9, %d4;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p2, %r9, %r1;
    @%p2 bra NEXT;
    mul.wide.u32 %d10, %r5, 4;
    add.u64 %d11, %d3, %d10;
    st.global.f32 [%d11], %f1;
DONE:
    ret;
}
"""
# Each warp multiplies 16 x 16 by 16 x 8 numbers (a row of f by a column of g, then one of 5 - f by the same) and adds
# the products up, `pn` times. A number of the sum is 80 g `pn`, a whole number that a float holds exactly below 2**24.
TENSOR = """
.visible .entry tensor(.param .u64 pr, .param .u32 pn)
{
    .reg .pred %p<2>;
    .reg .b16 %h<4>;
    .reg .b32 %r<12>;
    .reg .f32 %f<7>;
    .reg .b64 %d<3>;
    ld.param.u64 %d1, [pr];
    ld.param.u32 %r1, [pn];
    cvta.to.global.u64 %d1, %d1;
    mov.u32 %r2, %tid.x;
    shr.u32 %r3, %r2, 2;
    and.b32 %r4, %r3, 3;
    add.u32 %r4, %r4, 1;
    cvt.rn.f16.u32 %h1, %r4;
    mov.b32 %r5, {%h1, %h1};
    sub.u32 %r6, 5, %r4;
    cvt.rn.f16.u32 %h2, %r6;
    mov.b32 %r7, {%h2, %h2};
    and.b32 %r8, %r3, 1;
    add.u32 %r8, %r8, 1;
    cvt.rn.f16.u32 %h3, %r8;
    mov.b32 %r9, {%h3, %h3};
    mov.f32 %f1, 0f00000000;
    mov.f32 %f2, 0f00000000;
    mov.f32 %f3, 0f00000000;
    mov.f32 %f4, 0f00000000;
    mov.u32 %r10, 0;
NEXT:
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%f1, %f2, %f3, %f4}, {%r5, %r5, %r5, %r5}, {%r9, %r9}, {%f1, %f2, %f3, %f4};
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%f1, %f2, %f3, %f4}, {%r7, %r7, %r7, %r7}, {%r9, %r9}, {%f1, %f2, %f3, %f4};
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p1, %r10, %r1;
    @%p1 bra NEXT;
    mul.lo.u32 %r11, %r1, 80;
    cvt.rn.f32.u32 %f5, %r11;
    add.f32 %f6, %f5, %f5;
    setp.neu.f32 %p1, %f1, %f5;
    @%p1 bra WRONG;
    setp.neu.f32 %p1, %f2, %f6;
    @%p1 bra WRONG;
    setp.neu.f32 %p1, %f3, %f5;
    @%p1 bra WRONG;
    setp.neu.f32 %p1, %f4, %f6;
    @%p1 bra WRONG;
    bra DONE;
WRONG:
    mov.u64 %d2, 1;
    red.global.add.u64 [%d1], %d2;
DONE:
    ret;
}
"""
BASE = FILL + CHECK + DIFFER + MULTIPLY
