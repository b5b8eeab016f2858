"""Neighbours, graph and eigenpairs of tables of any length, part by part in a store."""
