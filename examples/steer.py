#!/usr/bin/env python3
"""Steers `offermill run` from another program: starts two executors, ends one of them, and stops the run.

    python3 examples/steer.py target/release/offermill --master 'local-cluster[2,2,2048]' --executor-memory 64m

docs/steering.md describes the events and the commands.
"""

import json
import queue
import subprocess
import sys
import threading
import time

PATIENCE_S = 60


class Run:
    """A run, whose events wait in a queue. What it says on standard error goes to that of this program."""

    def __init__(self, program, flags, command):
        arguments = [program, "run", "--steered", "--num-executors", "0", *flags, "--", *command]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.events = queue.Queue()
        # On a thread of its own: a run never waits for a parent that doesn't read, but drops events.
        threading.Thread(target=self._read, daemon=True).start()
        assert self.wait_for("started")["protocol"] == 1

    def _read(self):
        for line in self.process.stdout:
            self.events.put(json.loads(line))
        self.events.put(None)

    def wait_for(self, name):
        """The next event with this name; those before it are dropped."""
        deadline = time.monotonic() + PATIENCE_S
        while (event := self.events.get(timeout=max(0, deadline - time.monotonic()))) is not None:
            if event["event"] == name:
                return event
        sys.exit(f"offermill has ended before {name!r}")

    def command(self, line):
        """Sends a command and returns its answer, which comes before the starts and ends that it causes."""
        print(line, file=self.process.stdin, flush=True)
        answer = self.wait_for("answer")
        return answer["answer"] if answer["ok"] else sys.exit(f"{line}: {answer['answer']}")


program, *flags = sys.argv[1:]
run = Run(program, flags, ["sleep", "1000"])
print("registered as", run.wait_for("registered")["framework_id"])
run.command("limit 2")
first, second = (run.wait_for("running")["executor"] for _ in range(2))
print("running:", first, second)
# A lower limit comes first, or another executor would start in its place.
run.command("limit 1")
print(run.command(f"kill {first}"))
ended = run.wait_for("ended")
print(ended["executor"], "ended:", ended["cause"], "by signal", ended["signal"])
run.command("stop")
summary = run.wait_for("summary")
run.process.stdin.close()
print(summary["ending"], "- exit code", run.process.wait(PATIENCE_S))
sys.exit(summary["exit_code"])
