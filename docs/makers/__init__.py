"""One module for each generated page: it reads a registry of the code and returns the page's text."""
