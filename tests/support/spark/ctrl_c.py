"""Ctrl-C at a terminal, in one of Spark's shells: starts a job, interrupts it, and runs another one. `submit --shell`
runs it, with the shell's command line."""

import os
import pty
import select
import signal
import sys
import time

PATIENCE_S = 120
# A prompt, and lines to type. The terminal shows these as well, so none contains what is waited for.
SHELLS = {
    "pyspark": (
        ">>> ",
        'print("APP" + "_ID", sc.applicationId)',
        'sc.parallelize(range(2), 2).foreach(lambda i: [open(f"PLACE-{i}", "w"), __import__("time").sleep(600)])',
        'print("SUM" + "_IS", sc.parallelize(range(100), 2).sum())',
        "quit()",
    ),
    "spark-shell": (
        "scala> ",
        'println("APP" + "_ID " + sc.applicationId)',
        'sc.parallelize(0 until 2, 2).foreach { i => new java.io.File(s"PLACE-$i").createNewFile(); '
        "while (!org.apache.spark.TaskContext.get().isInterrupted()) Thread.sleep(50) }",
        'println("SUM" + "_IS " + sc.parallelize(0 until 100, 2).sum().toInt)',
        ":quit",
    ),
}


class Terminal:
    """A program at a terminal of its own. What it writes is passed on."""

    def __init__(self, command):
        self.text = ""
        process, self.handle = pty.fork()
        if process == 0:
            # Java never handles a signal that was ignored when it began, as it is in what a script starts with `&`.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.environ["TERM"] = "dumb"
            # Otherwise pyspark itself cancels nothing: its handler wants the connection that the job waits on.
            os.environ["PYSPARK_PIN_THREAD"] = "false"
            os.execvp(command[0], command)

    def type(self, text):
        os.write(self.handle, text.encode())

    def await_that(self, is_there, what):
        """Reads until a condition holds, of which the text that came since the last call is the argument."""
        give_up = time.monotonic() + PATIENCE_S
        while not is_there(self.text):
            if time.monotonic() > give_up:
                raise TimeoutError(f"no {what} within {PATIENCE_S} s")
            if select.select([self.handle], [], [], 0.1)[0]:
                piece = os.read(self.handle, 4096).decode(errors="replace")
                print(piece.replace("\r", ""), end="", flush=True)
                self.text += piece
        self.text = ""


def drill(place, command):
    prompt, name, endless, add, leave = SHELLS[os.path.basename(command[0])]
    terminal = Terminal(command)
    for line in (name, endless.replace("PLACE", place)):
        terminal.await_that(lambda text: prompt in text, "prompt")
        terminal.type(line + "\n")
    terminal.await_that(lambda _: all(os.path.exists(f"{place}-{task}") for task in range(2)), "tasks")
    print("\nRUNNING", flush=True)
    terminal.type("\x03")
    terminal.await_that(lambda text: prompt in text, "prompt after Ctrl-C")
    terminal.type(add + "\n")
    terminal.await_that(lambda text: "SUM_IS 4950" in text and prompt in text, "sum")
    print("\nRESULT ok", flush=True)
    while not os.path.exists(f"{place}-end"):
        time.sleep(0.1)
    terminal.type(leave + "\n")
    try:
        terminal.await_that(lambda _: False, "end")
    except OSError:
        # The terminal has no program any more.
        pass


if __name__ == "__main__":
    drill(sys.argv[1], sys.argv[2:])
