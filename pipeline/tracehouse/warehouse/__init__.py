"""The DuckDB side: SQL views, their installer, the warehouse file and its reader."""
