"""The running broker: sockets, proxy thread, poll loop, lock, runtime directory, drain.

It decides how bytes reach the control plane and how its actions are performed. It refuses to know what
a payload means: events pass through the proxy, in C, unopened.
"""
