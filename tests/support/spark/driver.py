"""The driver itself: waits for executors, gives them work, checks what comes back. `spark-driver` starts it."""

import argparse
import os
import sys
import time

from pyspark import SparkConf, SparkContext

PATIENCE_S = 300
DISTINCT = 1000
POINTS = 200_000


def inside(i):
    """Whether the i-th of some scattered points is within the quarter of a circle."""
    x = (i * 2654435761 % 2**32) / 2**32
    y = (i * 40503 * 69069 % 2**32) / 2**32
    return 1 if x * x + y * y < 1 else 0


def say(*words):
    # In one piece: `print` writes word by word, and what Spark logs may come in between.
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--wait-cores", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--until", default="")
    parser.add_argument("--conf", action="append", default=[])
    return parser.parse_args()


def context(args):
    conf = SparkConf().setMaster(args.master).setAppName("offermill")
    conf.set("spark.driver.port", args.port).set("spark.driver.memory", "512m").set("spark.executor.memory", "512m")
    # The files of an executor that was killed are given up after three seconds, not fifteen.
    conf.set("spark.shuffle.io.retryWait", "1s")
    for key in ["spark.driver.host", "spark.driver.bindAddress"]:
        conf.set(key, "127.0.0.1")
    for key in ["spark.ui.enabled", "spark.ui.showConsoleProgress"]:
        conf.set(key, "false")
    for setting in args.conf:
        key, _, value = setting.partition("=")
        conf.set(key, value)
    sc = SparkContext(conf=conf)
    sc.setLogLevel("ERROR")
    return sc


def await_cores(sc, wanted):
    """Spark's scheduler counts the cores that registered. It is out of Python's reach, except as a text."""
    backend = sc._jsc.sc().schedulerBackend()
    give_up = time.monotonic() + PATIENCE_S
    while True:
        cores = int(sc._jvm.String.valueOf(backend.totalCoreCount()))
        if cores >= wanted:
            say("CORES", cores)
            return True
        if time.monotonic() > give_up:
            say("RESULT wrong:", cores, "of", wanted, "cores registered in", PATIENCE_S, "s")
            return False
        time.sleep(0.1)


def work(sc, expected):
    """A shuffle that stays in the JVM, and a job for Python workers. Says what is wrong, or ok."""
    java = sc._jvm.org.apache.spark.api.java.JavaSparkContext(sc._jsc.sc())
    distinct = java.parallelize([i % DISTINCT for i in range(2 * DISTINCT)], 8).distinct().count()
    hits = sc.parallelize(range(POINTS), 8).map(inside).sum()
    if (distinct, hits) == (DISTINCT, expected):
        return "ok"
    return f"wrong: {distinct} of {DISTINCT} distinct, {hits} of {expected} inside"


def main():
    args = arguments()
    sc = context(args)
    say(f"DRIVER_URL spark://CoarseGrainedScheduler@127.0.0.1:{args.port}")
    say("APP_ID", sc.applicationId)
    if not await_cores(sc, args.wait_cores):
        return 1
    expected = sum(map(inside, range(POINTS)))
    results, number = set(), 0
    while number < args.rounds or (args.until and not os.path.exists(args.until)):
        result = work(sc, expected)
        say("ROUND", number, result)
        results.add(result)
        number += 1
    say("RESULT", "ok" if results == {"ok"} else "wrong")
    sc.stop()
    return 0 if results == {"ok"} else 1


if __name__ == "__main__":
    sys.exit(main())
