"""What Spark SQL means, before anything runs: views are admitted and queries matched by it.

`parse` makes a tree of a text, `resolve` says which column each name means (`scope`: the relations that it
may be of), `canonical` writes what means the same the same way. `aggregates`, `grain`, `functions` and
`outputs` say what an expression is, `keys` what tells rows apart, `merge` how rows made of further files join
those that are stored.
"""
