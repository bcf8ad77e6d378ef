"""What mv_assets costs, as ratios of things measured interleaved in one run; `make bench` runs them all."""
