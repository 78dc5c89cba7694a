"""Slow, evident twins of the compiled routines, and a slow way to make a frame."""
