"""What a query asks of one base table, and which columns of a view answer it. Pure."""
