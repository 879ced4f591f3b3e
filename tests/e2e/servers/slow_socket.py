"""A daemon that is slow to answer."""
import contextlib
import os
import socket
import threading


class SlowSocket:
    """A socket that leads to another one; questions and answers are held for so long."""

    def __init__(self, test, target, question_s=0, answer_s=0):
        self.path, self.target = f"{test.path(os.path.basename(target))}.slow", target
        self.question_s, self.answer_s, self.closed = question_s, answer_s, threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.threads = []
        self.start(self.serve)
        test.addCleanup(self.close)

    def start(self, target, *arguments):
        self.threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self.threads[-1].start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                self.start(self.carry, near)

    def carry(self, near):
        with near, socket.socket(socket.AF_UNIX) as far, contextlib.suppress(OSError):
            far.connect(self.target)
            self.closed.wait(self.question_s)
            self.start(self.copy, near, far)
            self.closed.wait(self.answer_s)
            self.copy(far, near)

    def copy(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.closed.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
