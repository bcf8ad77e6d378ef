"""Views as declared: their SQL analysed, their definition hash, and the catalog that opens them all."""
