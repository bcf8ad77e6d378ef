"""Folders of files, here or in a store: what they hold, and how a file is known again."""
