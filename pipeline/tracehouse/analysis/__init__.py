"""What the events of a trace mean: nesting, links, names, signatures, summaries."""
