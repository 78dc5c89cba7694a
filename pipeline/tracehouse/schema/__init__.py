"""Every stored table that Python code fills: names, types, units, meaning."""
