"""Arrays, files, progress bars, special functions and HTML pages, used on every floor."""
