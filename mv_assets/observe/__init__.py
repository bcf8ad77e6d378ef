"""What is there now, and what changed: a look compares each bucket's recorded inputs with the current ones.

`watch` makes a round of looks: tables are listed once, `inputs` says what the inputs of each bucket are now,
`consistency` marks what no longer matches, in the map itself or in a copy of it (`maps`). What comes of it is
an `observation`, of which a plan is made. `second_look` looks once more before a commit.
"""
