"""The posterior: prior times likelihood at the labelled nodes, and what samplers see of it."""
