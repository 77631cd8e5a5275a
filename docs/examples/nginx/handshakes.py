"""TLS handshakes with a server on port 8443, at random moments: handshakes.py RATE SECONDS."""

import random
import socket
import ssl
import sys
import threading
import time


def visit(context):
    with socket.create_connection(("127.0.0.1", 8443)) as plain:
        with context.wrap_socket(plain) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            connection.recv(1000)


def main():
    rate, seconds = float(sys.argv[1]), float(sys.argv[2])
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    moments = random.Random(1)
    due = time.monotonic()
    end = due + seconds
    visits = []
    while due < end:
        due += moments.expovariate(rate)
        time.sleep(max(0, due - time.monotonic()))
        visits.append(threading.Thread(target=visit, args=(context,)))
        visits[-1].start()
    for it in visits:
        it.join()
    print(len(visits), "handshakes")


main()
