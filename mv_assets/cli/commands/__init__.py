"""One module a command: it parses, calls the project, and prints."""
