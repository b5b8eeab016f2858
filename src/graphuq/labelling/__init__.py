"""Labelling by people: a page in the browser, a file of labels, and the loop between them."""
