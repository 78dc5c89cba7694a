"""A module a verb: plain functions that return data; no click, no printing."""
