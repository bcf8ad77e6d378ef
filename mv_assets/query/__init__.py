"""A SELECT on a base table: the same answer, from buckets that can be trusted where there are any.

The way of a query: `statement` reads the text, and `answering` tries it until nothing that was read had
changed. For each try `present` holds the tables and maps still, and `planning` makes a frame: `asking` takes
the query apart, `routing` deals it out to views (`offers` says what they have in terms of the same base,
`matching` holds one against the other, `fitness` tells which buckets may be used, `splitting` deals out the
time), and `composing` makes one frame of the parts, which `relations` reads. What no view can answer is asked
of the relations as it was written; `naming` is for views asked by their own name.
"""
