"""Runs a program on a terminal of its own, a pseudo-terminal, for tests. What the program writes there goes to standard
output as it is, and the exit code is the program's.

    terminal.py ROWS COLUMNS PROGRAM ARGUMENT…

Lines of standard input:

    type HEX              types these bytes
    resize ROWS COLUMNS   changes the size. The program is stopped meanwhile, and its output so far is read; then
                          ESC _ ROWS ; COLUMNS ESC \\ follows, so that a reader knows which size what it reads is for
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios

# What a stopped program has written comes within this time, in seconds.
SETTLES_WITHIN = 0.2


def set_size(handle, rows, columns):
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def write(data):
    while data:
        data = data[os.write(1, data) :]


class Terminal:
    def __init__(self, rows, columns, program):
        self.is_open = True
        self.process, self.handle = pty.fork()
        if self.process == 0:
            # What the tests' own parent may have ignored.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            set_size(0, rows, columns)
            os.execvp(program[0], program)

    def pass_on(self):
        """Passes on what is to be read, which is an error once no process has the terminal any more."""
        try:
            data = os.read(self.handle, 65536)
        except OSError:
            data = b""
        self.is_open = bool(data)
        write(data)

    def resize(self, rows, columns):
        os.kill(self.process, signal.SIGSTOP)
        while self.is_open and select.select([self.handle], [], [], SETTLES_WITHIN)[0]:
            self.pass_on()
        write(b"\x1b_%d;%d\x1b\\" % (rows, columns))
        set_size(self.handle, rows, columns)
        os.kill(self.process, signal.SIGCONT)


terminal = Terminal(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
requests, waiting = [0], b""
while terminal.is_open:
    ready = select.select([terminal.handle, *requests], [], [])[0]
    if terminal.handle in ready:
        terminal.pass_on()
    if 0 in ready:
        data = os.read(0, 4096)
        if not data:
            requests = []
        *lines, waiting = (waiting + data).split(b"\n")
        for line in lines:
            what, *words = line.split()
            if what == b"type":
                os.write(terminal.handle, bytes.fromhex(words[0].decode()))
            else:
                terminal.resize(int(words[0]), int(words[1]))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(terminal.process, 0)[1]))
