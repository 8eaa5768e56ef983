"""The HTTP door: REST, WebSocket, events, webhooks and pages, on loopback. It translates and calls the api.

Who may connect is checked here (Host, Origin, cookies). What a caller may do is checked by the api.
"""
