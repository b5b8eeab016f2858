"""Results: numbers for every node, diagnostics, tables, files."""
