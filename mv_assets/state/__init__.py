"""The partition map: what may be trusted of each bucket of each view.

`model` has its values, `rules` what may happen to them, without I/O. `manager` is the one writer: each of its
operations locks a view, decides by the rules, and writes one `change`. Beside the map stand generations
(`registry`), the leases of its readers (`leases`) and what keeps a view from being worked on (`troubles`);
`health` says what is wrong. All of it is in one SQL database, behind `store`.
"""
