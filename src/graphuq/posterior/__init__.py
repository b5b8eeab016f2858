"""Posterior: prior times likelihood at the labelled nodes, and its form in white coordinates."""
