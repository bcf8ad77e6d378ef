"""Which view would answer a query: the smallest change of one that is there, or a new one."""
