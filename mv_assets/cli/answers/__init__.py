"""Answers to queries: asked, and printed or written in the format that was asked for."""
