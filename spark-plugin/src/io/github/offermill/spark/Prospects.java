package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashSet;
import java.util.Set;

/**
 * Whether an application can ever get an executor that works. One that can't would start executors for ever, or wait
 * for agents that are excluded:
 *
 * <ul>
 * <li>Many executors failed in a row, and none of them worked, nor did others meanwhile: at least ten, as with Spark's
 *   own standalone master, and twice as many as were alive at once, so that a few bad agents don't end a large
 *   application whose other executors still start. The limit that a user gives
 *   (<code>spark.executor.maxNumFailures</code>) replaces this one.
 * <li>All agents are excluded, and no executor ever worked. Excluded agents come back after a time, so an application
 *   whose executors worked waits for them.
 * </ul>
 *
 * <p>An executor works once it has got a task or sent a heartbeat. That it has registered is too little: it may fail
 * later in its start, as without the shuffle service that it is told to use.
 */
final class Prospects {
    private static final int FAILURES_MIN = 10;

    private final boolean limitsFailures;
    private boolean hasWorked = false;
    private boolean areAllExcluded = false;
    /** The executors that are alive. */
    private final Set<String> alive = new HashSet<>();
    /** Those of them that work. */
    private final Set<String> working = new HashSet<>();
    /** How many executors have failed since one worked. */
    private long failures = 0;
    /** How many were alive at once since then. */
    private long liveMax = 0;
    /** The last failure of an executor. */
    private String lastFailure = "";

    /** @param limitsFailures whether failures in a row end the application */
    Prospects(boolean limitsFailures) {
        this.limitsFailures = limitsFailures;
    }

    /** An executor works, or did so a moment ago. */
    synchronized void worked(String executor) {
        hasWorked = true;
        // Spark may say it when the executor has ended.
        if (alive.contains(executor)) {
            working.add(executor);
        }
        failures = 0;
        liveMax = 0;
    }

    /**
     * Returns why there will be no executor, or null while there may be one.
     *
     * @param event the last event of the run
     * @param live how many executors live after it
     */
    synchronized String over(JsonNode event, int live) {
        String executor = event.path("executor").asText();
        switch (event.path("event").asText()) {
            case "placed":
                alive.add(executor);
                areAllExcluded = false;
                liveMax = Math.max(liveMax, live);
                break;
            case "all_excluded":
                areAllExcluded = true;
                break;
            case "ended":
                alive.remove(executor);
                working.remove(executor);
                if (event.path("state").asText().equals("failed")) {
                    failures += 1;
                    lastFailure = event.path("message").asText() + " on " + event.path("host").asText();
                }
                break;
            default:
                return null;
        }
        if (!working.isEmpty()) {
            failures = 0;
        }
        if (limitsFailures && failures >= Math.max(FAILURES_MIN, 2 * liveMax)) {
            return failures + " executors have failed in a row, and none of them had worked; the last failure: "
                + lastFailure;
        }
        // Others that started before the exclusion may work.
        if (hasWorked || !areAllExcluded || live > 0) {
            return null;
        }
        return "no executor could be started, and all agents are excluded; the last failure: " + lastFailure;
    }
}
