"""Inference serving: which steps of a run are its steady state, and what they reach."""
