"""The running broker: sockets, proxy thread, poll loop, lock, runtime directory, drain.

It decides how bytes reach the control plane and how its actions are performed. It refuses to know what
a payload means: events pass through the proxy, in C, unopened.

Trust boundary: the runtime directory keeps other users out, and nothing else does. Whatever bytes a
process of the same user sends, it ends neither the broker nor anybody else's connection; but it may
publish in anybody's name, and it can use up memory (endless subscriptions, a message of endless
parts), processor and descriptors, which no option of libzmq prevents. Such a broker ends
(``--memory-bytes``, or libzmq's own abort without descriptors); whoever supervises it starts the next
one, and clients find that by themselves.
"""
