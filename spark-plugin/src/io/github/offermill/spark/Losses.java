package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.apache.spark.scheduler.ExecutorExited;
import org.apache.spark.scheduler.ExecutorLossReason;
import org.apache.spark.scheduler.ExecutorProcessLost;
import scala.Option;

/**
 * Tells Spark why executors are gone. Spark sees a closed connection, Offermill knows the reason a moment later, or
 * earlier: whatever comes first, Spark gets the reason, and if none comes, that the connection was closed.
 */
final class Losses {
    private static final long WAIT_SECONDS = 5;
    private static final int ENDED_MAX = 1000;
    private static final String NO_REASON =
        "its connection was closed, and Offermill knew no reason within " + WAIT_SECONDS + " s";

    private static final String UNREACHABLE = "its connection was closed, and its agent is unreachable";

    private final BiConsumer<String, ExecutorLossReason> remove;
    private final ScheduledExecutorService timer;
    /** Executors that Offermill has placed, and that haven't ended. */
    private final Set<String> live = new HashSet<>();
    /** Those whose connection is closed, and whose reason is awaited. */
    private final Set<String> disconnected = new HashSet<>();
    /** Those whose agents are unreachable. They may still run. */
    private final Set<String> unreachable = new HashSet<>();
    /** The names that hosts of executors have for Spark. Those of the cluster may be others. */
    private final Map<String, String> hosts = new HashMap<>();
    /** Those that ended last, and why. */
    private final Map<String, ExecutorLossReason> ended = new LinkedHashMap<String, ExecutorLossReason>() {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, ExecutorLossReason> eldest) {
            return size() > ENDED_MAX;
        }
    };

    /** @param remove removes an executor from Spark, for a reason */
    Losses(BiConsumer<String, ExecutorLossReason> remove, ScheduledExecutorService timer) {
        this.remove = remove;
        this.timer = timer;
    }

    synchronized void placed(String executor) {
        live.add(executor);
    }

    synchronized int live() {
        return live.size();
    }

    /** An executor has registered with Spark. */
    void registered(String executor, String host) {
        ExecutorLossReason reason;
        synchronized (this) {
            reason = ended.get(executor);
            if (reason == null) {
                hosts.put(executor, host);
                return;
            }
        }
        removeAgain(executor, reason);
    }

    /** An executor's connection is closed. Its reason follows, or this one. */
    void disconnected(String executor) {
        ExecutorLossReason reason;
        synchronized (this) {
            reason = ended.get(executor);
            if (reason == null && !disconnected.add(executor)) {
                return;
            }
        }
        if (reason != null) {
            removeAgain(executor, reason);
        } else {
            timer.schedule(() -> giveUp(executor), WAIT_SECONDS, TimeUnit.SECONDS);
        }
    }

    /**
     * Removes an executor that Spark may know although it has ended: it takes executors whose registration was under
     * way then. Spark ignores those that it doesn't know.
     */
    private void removeAgain(String executor, ExecutorLossReason reason) {
        remove.accept(executor, reason);
    }

    private void giveUp(String executor) {
        boolean isUnreachable;
        synchronized (this) {
            if (!disconnected.remove(executor)) {
                return;
            }
            isUnreachable = unreachable.contains(executor);
        }
        // Without a reason as Spark counts a closed connection itself.
        String why = isUnreachable ? UNREACHABLE : NO_REASON;
        remove.accept(executor, new ExecutorProcessLost(why, Option.empty(), !isUnreachable));
    }

    /** Whether an executor's agent can be reached has changed. */
    synchronized void reachable(String executor, boolean isReachable) {
        if (isReachable) {
            unreachable.remove(executor);
        } else if (live.contains(executor)) {
            unreachable.add(executor);
        }
    }

    /** An executor has ended, as an event tells. */
    void ended(JsonNode event) {
        String executor = event.path("executor").asText();
        ExecutorLossReason reason;
        synchronized (this) {
            live.remove(executor);
            disconnected.remove(executor);
            unreachable.remove(executor);
            reason = reason(event, Option.apply(hosts.remove(executor)));
            ended.put(executor, reason);
        }
        remove.accept(executor, reason);
    }

    /** An executor has ended, and Spark needn't know why. */
    synchronized void left(String executor) {
        live.remove(executor);
        unreachable.remove(executor);
    }

    /**
     * Forgets the executors that a status doesn't have: the events of their ends were dropped, as this driver read them
     * too slowly.
     *
     * @param known those that live
     */
    void compare(Set<String> known) {
        String why = "it ended, and Offermill's report of it was left out";
        ExecutorLossReason reason = new ExecutorProcessLost(why, Option.empty(), false);
        Set<String> gone;
        synchronized (this) {
            gone = new HashSet<>(live);
            gone.removeAll(known);
            live.addAll(known);
            live.removeAll(gone);
            disconnected.removeAll(gone);
            unreachable.removeAll(gone);
            for (String executor : gone) {
                hosts.remove(executor);
                ended.put(executor, reason);
            }
        }
        for (String executor : gone) {
            remove.accept(executor, reason);
        }
    }

    /**
     * Why an executor ended, in Spark's terms.
     *
     * @param sparkHost the name that its host has for Spark, if it had registered
     */
    static ExecutorLossReason reason(JsonNode event, Option<String> sparkHost) {
        String cause = event.path("cause").asText();
        String message = event.path("message").asText("");
        String host = event.path("host").asText("");
        String why = (message.isEmpty() ? cause : message) + " on " + host;
        switch (cause) {
            case "exited":
                return new ExecutorExited(event.path("exit_code").asInt(), true, why);
            case "signaled":
                int signal = event.path("signal").asInt();
                // Mesos says "signal Killed".
                String which = message.contains("signal " + signal) ? "" : " (signal " + signal + ")";
                return new ExecutorExited(128 + signal, true, message + which + " on " + host);
            case "not_started":
                return new ExecutorExited(-1, false, why);
            case "agent_lost":
                // What shuffles left there is lost, too.
                return new ExecutorProcessLost(why, sparkHost, false);
            default:
                // As a container of Mesos that exceeded its memory: the task that causes it mustn't be tried for ever.
                boolean byApp = cause.equals("unknown") && event.path("state").asText().equals("failed");
                return new ExecutorProcessLost(why, Option.empty(), byApp);
        }
    }
}
