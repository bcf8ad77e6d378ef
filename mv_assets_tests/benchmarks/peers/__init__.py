"""`make bench-peers`: B9's trace and B2's late file for other tools that keep such views, beside ours."""
