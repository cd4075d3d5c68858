"""Applications whose driver gets its executors from Offermill's plug-in, with known answers. `submit` runs them."""

import json
import os
import signal
import sys
import threading
import time
import urllib.request

from pyspark import SparkConf, SparkContext
from pyspark.resource import ExecutorResourceRequests, ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import SparkSession

PATIENCE_S = 120
NUMBERS = 20_000


def say(*words):
    # In one piece: `print` writes word by word, and what Spark logs may come in between.
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def executors(sc):
    """How many executors Spark has. The driver has a block manager, too."""
    return sc._jsc.sc().getExecutorMemoryStatus().size() - 1


def await_executors(sc, what, is_enough):
    give_up = time.monotonic() + PATIENCE_S
    while not is_enough(executors(sc)):
        if time.monotonic() > give_up:
            raise TimeoutError(f"{executors(sc)} executors, but not {what} within {PATIENCE_S} s")
        time.sleep(0.05)


def work(spark):
    """Python workers, a shuffle of an RDD, and SQL. Says what is wrong, or ok."""
    numbers = spark.sparkContext.parallelize(range(NUMBERS), 8)
    squares = numbers.map(lambda number: number * number).sum()
    groups = numbers.map(lambda number: (number % 100, 1)).reduceByKey(lambda one, other: one + other, 4).collect()
    rows = spark.sql(f"select count(distinct id % 77), sum(id) from range({NUMBERS})").collect()[0]
    found = (squares, sorted(groups), tuple(rows))
    wanted = (
        sum(number * number for number in range(NUMBERS)),
        [(group, NUMBERS // 100) for group in range(100)],
        (77, sum(range(NUMBERS))),
    )
    return "ok" if found == wanted else f"wrong: {found}"


def logs(sc):
    """Opens the links to executors' logs in Spark's page. Returns how many there are, and in how many an executor says
    that it has started."""
    page = f"{sc.uiWebUrl}/api/v1/applications/{sc.applicationId}/executors"
    texts = []
    for executor in json.load(urllib.request.urlopen(page, timeout=PATIENCE_S)):
        for link in executor["executorLogs"].values():
            texts.append(urllib.request.urlopen(link, timeout=PATIENCE_S).read())
    return len(texts), sum(b"Starting executor ID" in text for text in texts)


def jobs(until):
    """Rounds of work until there is a file, and then one more. Executors that are there say so, and what their logs'
    links lead to."""
    spark = SparkSession.builder.getOrCreate()
    sc = spark.sparkContext
    say("APP_ID", sc.applicationId)
    await_executors(sc, "2", lambda number: number == 2)
    say("EXECUTORS 2")
    if sc.uiWebUrl:
        say("LOGS", *logs(sc))
    number, is_last, results = 0, False, set()
    while not is_last:
        is_last = os.path.exists(until)
        result = work(spark)
        say("ROUND", number, result)
        results.add(result)
        number += 1
    say("RESULT", "ok" if results == {"ok"} else "wrong")
    spark.stop()


def load(sc, tasks, seconds):
    """Tasks that take their time. Their sum tells that each has run once."""

    def one(number):
        time.sleep(seconds)
        return number

    return sc.parallelize(range(tasks), tasks).map(one).sum() == sum(range(tasks))


def dynamic(waves):
    """Executors come with the load and go without it: some waves."""
    sc = SparkContext(conf=SparkConf())
    time.sleep(1)
    say("BEFORE", executors(sc))
    for wave in range(int(waves)):
        results = []
        thread = threading.Thread(target=lambda into=results: into.append(load(sc, 16, 1.5)))
        began = time.monotonic()
        thread.start()
        say("LOAD", wave)
        await_executors(sc, "4", lambda number: number == 4)
        say("UP", wave, f"{time.monotonic() - began:.1f} s")
        thread.join()
        if results != [True]:
            say("RESULT wrong:", results)
            return
        began = time.monotonic()
        await_executors(sc, "0", lambda number: number == 0)
        say("DOWN", wave, f"{time.monotonic() - began:.1f} s")
    say("RESULT ok")
    sc.stop()


def idle(wanted):
    """Has executors, or none, and does nothing until it is killed."""
    sc = SparkContext(conf=SparkConf())
    await_executors(sc, wanted, lambda number: number == int(wanted))
    say("READY")
    # Fails when the driver is gone.
    while executors(sc) >= 0:
        time.sleep(0.1)


def busy():
    """Has one job that doesn't end. Says why it did."""
    sc = SparkContext(conf=SparkConf())
    say("APP_ID", sc.applicationId)
    await_executors(sc, "2", lambda number: number == 2)
    say("READY")
    try:
        load(sc, 2, 1000)
        say("RESULT wrong: the job has ended")
    except Exception as failure:
        say("FAILED", " ".join(str(failure).split())[:2000])


def executor_process():
    """The executor of the task that calls it: the Java above its Python worker."""
    process = os.getppid()
    while open(f"/proc/{process}/comm").read().strip() != "java":
        process = int(open(f"/proc/{process}/stat").read().rsplit(") ", 1)[1].split()[1])
    return process


def end_executor():
    """Ends the executor of the task that calls it."""
    os.kill(executor_process(), signal.SIGKILL)
    time.sleep(PATIENCE_S)


def deadly():
    """A job whose task ends each executor that tries it, and one that works."""
    sc = SparkContext(conf=SparkConf())
    say("APP_ID", sc.applicationId)
    await_executors(sc, "1", lambda number: number > 0)
    try:
        sc.parallelize([0], 1).foreach(lambda _: end_executor())
        say("RESULT wrong: the job has ended")
    except Exception as failure:
        say("FAILED", " ".join(str(failure).split())[:2000])
    say("RESULT", "ok" if load(sc, 2, 0.1) else "wrong")
    sc.stop()


def hosts_of(sc):
    """The hosts of executors, without the driver."""
    addresses = sc._jsc.sc().getExecutorMemoryStatus().keys().mkString(" ").split()
    hosts = [address.rpartition(":")[0] for address in addresses]
    return [host for host in hosts if host != sc.getConf().get("spark.driver.host")]


def places(*hosts):
    """One job after the other, each with data on one host, and an executor of its own. Says where that is."""
    sc = SparkContext(conf=SparkConf())
    jvm = sc._jvm
    to_scala = jvm.scala.jdk.javaapi.CollectionConverters.asScala
    for host in hosts:
        await_executors(sc, "0", lambda number: number == 0)
        where = jvm.java.util.ArrayList()
        where.add(host)
        data = jvm.java.util.ArrayList()
        data.add(jvm.scala.Tuple2(7, to_scala(where).toSeq()))
        rdd = sc._jsc.sc().makeRDD(to_scala(data).toSeq(), jvm.scala.reflect.ClassTag.Any())
        if rdd.count() != 1:
            say("RESULT wrong")
        say("HOST", *hosts_of(sc))
    say("RESULT ok")
    sc.stop()


def links():
    """Opens the links to an executor's logs."""
    sc = SparkContext(conf=SparkConf())
    await_executors(sc, "1", lambda number: number == 1)
    say("LOGS", *logs(sc))
    sc.stop()


def tokens(secret, until):
    """Has a secret of Hadoop's before there is a context. Says whether the driver gives it to executors, and whether
    they work; ends when there is a file."""
    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    hadoop = jvm.org.apache.spark.deploy.SparkHadoopUtil.get()
    name = jvm.org.apache.hadoop.io.Text("test")
    own = jvm.org.apache.hadoop.security.Credentials()
    own.addSecretKey(name, bytearray(secret, "utf-8"))
    hadoop.addCurrentUserCredentials(own)
    sc = SparkContext(conf=SparkConf())
    say("APP_ID", sc.applicationId)
    await_executors(sc, "2", lambda number: number == 2)
    given = sc._jsc.sc().schedulerBackend().currentDelegationTokens()
    found = given and hadoop.deserialize(given).getSecretKey(name)
    say("GIVEN", "ok" if found and bytes(found) == secret.encode() else f"wrong: {found}")
    say("RESULT", "ok" if load(sc, 2, 0.1) else "wrong")
    while not os.path.exists(until):
        time.sleep(0.05)
    sc.stop()


def refuse_profiles(sc):
    """Wants executors of another size for a part of a job, and tasks of another one. Says why not, a line each."""
    executors = ExecutorResourceRequests().cores(1).memory("600m")
    tasks = TaskResourceRequests().cpus(1)
    both = ResourceProfileBuilder().require(executors).require(tasks)
    for builder in [both, ResourceProfileBuilder().require(tasks)]:
        try:
            sc.parallelize(range(4), 2).withResources(builder.build).count()
            say("TAKEN")
        except Exception as failure:
            say("REFUSED", "0 s", " ".join(str(failure).split())[:1000])


def end_both(sc):
    """Ends both executors, of which one has just been killed: Spark may not know yet. Says when they are gone."""
    await_executors(sc, "2", lambda number: number == 2)
    process = sc.parallelize([0], 1).map(lambda _: executor_process()).first()
    names = sc._jvm.java.util.ArrayList()
    for name in ["0", "1"]:
        names.add(name)
    os.kill(process, signal.SIGKILL)
    both = sc._jvm.PythonUtils.toSeq(names)
    say("ASKED", sc._jsc.sc().killExecutors(both))
    await_executors(sc, "0", lambda number: number == 0)
    say("GONE")


def plain(jar, program, master, *settings):
    """A driver that Python starts, whose program says all itself: profiles are refused, a job has the right answer. It
    ends its executors, if it may; it doesn't stop its context, and ends with an exit code of its own, or by an
    exception."""
    *settings, end = settings
    # What other programs would find where they are installed.
    conf = SparkConf().setMaster(master).set("spark.driver.extraClassPath", jar).set("spark.offermill.binary", program)
    for setting in settings:
        key, _, value = setting.partition("=")
        conf.set(key, value)
    sc = SparkContext(conf=conf)
    say("APP_ID", sc.applicationId)
    refuse_profiles(sc)
    say("RESULT", "ok" if load(sc, 2, 0.1) else "wrong")
    if conf.get("spark.dynamicAllocation.enabled", "false") != "true":
        end_both(sc)
    if end == "exception":
        raise ValueError("an end without a stop")
    sys.exit(int(end))


def refusals(*cases):
    """Contexts that can't be: each case is KEY=VALUE;KEY=VALUE. Says why, a line each."""
    for case in cases:
        conf = SparkConf()
        for setting in case.split(";"):
            key, _, value = setting.partition("=")
            conf.set(key, value)
        began = time.monotonic()
        try:
            SparkContext(conf=conf).stop()
            say("TAKEN", case)
        except Exception as failure:
            say("REFUSED", f"{time.monotonic() - began:.0f} s", " ".join(str(failure).split())[:10000])


if __name__ == "__main__":
    scenes = [jobs, dynamic, idle, busy, deadly, places, links, tokens, plain, refusals]
    scenes = {scene.__name__: scene for scene in scenes}
    scenes[sys.argv[1]](*sys.argv[2:])
