"""Routines over arrays, compiled by numba: intervals, nesting, linking.

Arrays and scalars in and out, nanoseconds as int64, no Python objects. Callers sort; a routine
trusts its "Needs". A routine calls only routines of its own file, because the cache of compiled
code does not see changes in other files.
"""
