"""The control plane as a state machine: peers, asks, retained values, counters.

It decides what the broker answers to a control message and to the passing of time. Sans-IO: it refuses
to know sockets, files, clocks and loops; messages and ``now`` come in, actions go out.
"""
