"""The lake: Parquet files, a manifest for each part, and their upkeep."""
