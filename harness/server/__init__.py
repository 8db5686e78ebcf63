"""The fixture server: plays one case to whoever asks on that trial's own, unguessable path.

Bound to 127.0.0.1 on a free port. `script` works out the bytes, `player` puts them on the wire,
`guard` turns away what no subject would send, `app` ties them to aiohttp.
"""
