import socket
import sys

with socket.socket(socket.AF_UNIX) as daemon:
    daemon.connect(sys.argv[1])
    daemon.sendall(sys.stdin.buffer.read())
    daemon.shutdown(socket.SHUT_WR)
    while answer := daemon.recv(65536):
        sys.stdout.buffer.write(answer)
