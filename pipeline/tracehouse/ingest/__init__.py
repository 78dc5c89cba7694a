"""From files to Arrow batches: finding, opening, decoding and reading traces."""
