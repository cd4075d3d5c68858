"""A framework of `mesoshttp`, a client of Mesos' v1 scheduler API that isn't this project's and isn't changed: two tasks
end by themselves, one is killed, and the framework is torn down. Usage: mesoshttp_scheduler.py URL USER"""

import json
import sys
import threading
import time
import urllib.request

from mesoshttp.client import MesosClient

url, user = sys.argv[1:]
client = MesosClient(mesos_urls=[url], frameworkName="a foreign framework", frameworkUser=user, max_reconnect=1)
wanted = ["one", "two", "endless"]
ends, lock, over = {}, threading.Lock(), threading.Event()


def task(name, offer):
    scalar = lambda kind, value: {"name": kind, "type": "SCALAR", "scalar": {"value": value}}
    command = {"shell": True, "value": "sleep 100000" if name == "endless" else "sleep 0.2", "user": user}
    return {
        "name": name,
        "task_id": {"value": name},
        "agent_id": offer.get_offer()["agent_id"],
        "command": command,
        "resources": [scalar("cpus", 0.5), scalar("mem", 32)],
    }


def on_offers(offers):
    for offer in offers:
        with lock:
            tasks = [task(name, offer) for name in wanted]
            wanted.clear()
        if tasks:
            offer.accept(tasks)
        else:
            offer.decline({"filters": {"refuse_seconds": 60}})


def on_update(status):
    it = status["status"]
    name, state = it["task_id"]["value"], it["state"]
    if name == "endless" and state == "TASK_RUNNING":
        client.get_driver().kill(it["agent_id"]["value"], name)
    if state == "TASK_ERROR":
        print(f"mesoshttp: {it}")
    if state not in ("TASK_STARTING", "TASK_RUNNING", "TASK_KILLING"):
        ends[name] = state
        if len(ends) == 3:
            over.set()


def frameworks():
    with urllib.request.urlopen(url + "/state") as answer:
        return [one["name"] for one in json.load(answer)["frameworks"]]


client.on(MesosClient.OFFERS, on_offers)
client.on(MesosClient.UPDATE, on_update)
threading.Thread(target=client.register, daemon=True).start()
assert over.wait(60), f"only these tasks have ended within a minute: {ends}"
assert ends == {"one": "TASK_FINISHED", "two": "TASK_FINISHED", "endless": "TASK_KILLED"}, ends
assert frameworks() == ["a foreign framework"], frameworks()
client.get_driver().tearDown()
for _ in range(100):
    if not frameworks():
        break
    time.sleep(0.1)
assert not frameworks(), "the framework is still registered"
print("mesoshttp: 2 tasks have finished, 1 was killed, and the framework is gone")
