"""Several labels a row: tags, each of which a row may have or not."""
