"""The sample traces, drawn by hand: one module a sample, in plain Python."""
