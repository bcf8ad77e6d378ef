"""Tables that are a folder of Parquet files: their listing, and what their footers and folders say."""
