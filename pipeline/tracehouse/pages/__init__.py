"""Pages for people: tables and charts as HTML, a workbook, Markdown. They compute nothing.

Names in traces are untrusted: they are text everywhere, never markup, a formula or a terminal's
control sequence.
"""
