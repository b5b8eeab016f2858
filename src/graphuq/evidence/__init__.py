"""Choosing hyperparameters and graphs by the marginal likelihood of the labels."""
