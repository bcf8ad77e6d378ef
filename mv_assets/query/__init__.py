"""A SELECT on a base table: the same answer, from buckets that can be trusted where there are any.

The way of a query: `statement` reads the text, `asking` takes it apart, `offers` says what views have in
terms of the same base, `matching` holds one against the other, `fitness` tells which buckets may be used,
`splitting` deals out the time, `composing` makes one frame of the parts, `answering` runs it and hands it out
once nothing that was read had changed. `naming` is for views asked by their own name.
"""
