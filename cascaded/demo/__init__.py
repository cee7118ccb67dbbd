"""The demo: eight small networks, from nothing to a page that shows what they do."""
