"""What is there now, and what changed: a look compares each bucket's recorded inputs with the current ones.

`present` is what there is: every table asked once, views as the tables of others, and the `inputs` that each
bucket of a view has of them. A round of looks (`watch`) reads the maps first, then the present; `consistency`
marks what no longer matches, in the map itself or in a copy of it (`maps`), and says by which files
(`difference`); records follow files that were only rewritten (`rewrites`). What comes of it is an
`observation`, of which a plan is made; `additions` are files that need only be merged. `second_look` looks
once more before a commit. Queries look at the present too.
"""
