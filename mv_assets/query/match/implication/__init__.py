"""Whether a filter says at least what a view's own does, in other words: a prover over values of columns."""
