"""What keeps stored data right and small: audits, garbage collection, compaction."""
