"""Tables and figures of four papers, recomputed: one package per paper, one module per study."""
