"""Rewrite files: each module finds optimizer nodes in one kind of text and edits it."""
