"""Work of pooling, window by window."""

from __future__ import annotations


def window_count(size, window, stride, padding, dilation, ceil):
    """Count windows along a row: those that fit, and with `ceil` one that starts inside."""
    length = dilation * (window - 1) + 1
    padded = size + 2 * padding
    count, start = 0, 0
    while start + length <= padded:
        count, start = count + 1, start + stride
    partly = start + length < padded + stride
    return count + (ceil and partly and start < size + padding)


def adaptive_visits(size, out):
    """Count the elements of all windows that share a row out among `out` outputs."""
    return sum(-(-(i + 1) * size // out) - i * size // out for i in range(out))
