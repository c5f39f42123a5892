# SPDX-License-Identifier: Apache-2.0
"""Ports that are chosen now and listened on later."""
import random
import socket


def free_ports(count):
    """Below those that the kernel gives to whoever connects or asks for any: a server that is down for a while must find
    its ports free when it comes back, and a client that tries its port must not meet itself there."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as handle:
        top = int(handle.read().split()[0])
    sockets = []
    while len(sockets) < count:
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", random.randrange(10000, top) if top > 12000 else 0))
        except OSError:
            one.close()
            continue
        sockets.append(one)
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
