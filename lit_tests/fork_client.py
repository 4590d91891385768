"""Owns the commands of the lit suite: each asks the server beside it for its work.

It runs without site packages and with few imports, as it is started for each command.
"""

import marshal
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.path.join(os.path.dirname(sys.argv[0]), "server"))
    socket.send_fds(connection, [b"\0"], [0, 1, 2])
    connection.sendall(marshal.dumps((sys.argv, os.getcwd(), dict(os.environ))))
    code = connection.recv(1)
if not code:
    os.abort()  # as the tool did: no exit code may hide it
os._exit(code[0])
