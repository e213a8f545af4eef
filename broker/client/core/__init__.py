"""The client without its sockets: numbering, reading, accounting and the control session.

Sans-IO: bytes and times go in, events, counts and bytes come out. The threads and loops around it
are :mod:`broker.client.publisher`, :mod:`~broker.client.subscriber` and :mod:`~broker.client.aio`.
"""
