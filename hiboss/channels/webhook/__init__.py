"""Webhooks: programs that post to hiboss, and web servers that hiboss posts to (docs/webhooks.md).

- `adapter`: the adapter, for one webhook of either direction
- `request_text`: what a request says: the text of its body, and the fields that a template can name
- `templates`: texts with fields of a JSON document in them
- `posting`: one signed POST to a server, and what its response means
"""
