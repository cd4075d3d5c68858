"""How fast a cluster gives executors: the application that `figures` runs. Says NAME SECONDS, a line each."""

import sys
import threading
import time

from pyspark import SparkConf, SparkContext

PATIENCE_S = 300


def first(sc, began):
    """The time to the end of the first task, since before the driver's context; of which some until the context."""
    context_s = time.monotonic() - began
    # Counted in Java: no worker of Python is started.
    sc.parallelize([1], 1)._jrdd.count()
    print("context", f"{context_s:.2f}", flush=True)
    print("first", f"{time.monotonic() - began:.2f}", flush=True)


def growth(sc, wanted):
    """The times to 1, 2, 4, … executors since as many tasks as wanted executors began to wait. Spark itself asks for
    the first after a second and then for twice as many every second."""
    threading.Thread(target=lambda: load(sc, wanted), daemon=True).start()
    began = time.monotonic()
    goals = [goal for goal in (1, 2, 4, wanted) if goal <= wanted]
    for goal in sorted(set(goals)):
        while sc._jsc.sc().getExecutorMemoryStatus().size() - 1 < goal:
            if time.monotonic() - began > PATIENCE_S:
                raise TimeoutError(f"no {goal} executors within {PATIENCE_S} s")
            time.sleep(0.02)
        print(f"executors-{goal}-of-{wanted}", f"{time.monotonic() - began:.2f}", flush=True)


def load(sc, tasks):
    try:
        sc.parallelize(range(tasks), tasks).map(lambda _: time.sleep(PATIENCE_S)).count()
    except Exception:
        # It is cancelled as the context stops.
        pass


if __name__ == "__main__":
    start = time.monotonic()
    context = SparkContext(conf=SparkConf())
    if sys.argv[1] == "first":
        first(context, start)
    else:
        growth(context, int(sys.argv[1]))
    context.stop()
