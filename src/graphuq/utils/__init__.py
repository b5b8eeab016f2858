"""Helpers for all packages: arrays, checks, files, progress bars, special functions, pages."""
