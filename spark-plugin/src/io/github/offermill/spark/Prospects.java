package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * Whether an application can ever get an executor that works. One that can't would start executors for ever, or wait
 * for agents that are excluded:
 *
 * <ul>
 * <li>Many executors failed in a row, and none of them registered with the driver: at least ten, as with Spark's own
 *   standalone master, and twice as many as were alive at once, so that a few bad agents don't end a large application
 *   whose other executors still start. The limit that a user gives (<code>spark.executor.maxNumFailures</code>)
 *   replaces this one.
 * <li>All agents are excluded, and no executor ever worked. Excluded agents come back after a time, so an application
 *   whose executors worked waits for them.
 * </ul>
 */
final class Prospects {
    private static final int FAILURES_MIN = 10;

    private final boolean limitsFailures;
    private boolean hasWorked = false;
    private boolean areAllExcluded = false;
    /** How many executors have failed since one was registered with the driver. */
    private long failures = 0;
    /** How many were alive at once since then. */
    private long liveMax = 0;
    /** The last failure of an executor. */
    private String lastFailure = "";

    /** @param limitsFailures whether failures in a row end the application */
    Prospects(boolean limitsFailures) {
        this.limitsFailures = limitsFailures;
    }

    /** An executor is registered with Spark. */
    synchronized void worked() {
        hasWorked = true;
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
        switch (event.path("event").asText()) {
            case "placed":
                areAllExcluded = false;
                liveMax = Math.max(liveMax, live);
                break;
            case "all_excluded":
                areAllExcluded = true;
                break;
            case "ended":
                if (event.path("state").asText().equals("failed")) {
                    failures += 1;
                    lastFailure = event.path("message").asText() + " on " + event.path("host").asText();
                }
                break;
            default:
                return null;
        }
        if (limitsFailures && failures >= Math.max(FAILURES_MIN, 2 * liveMax)) {
            return failures + " executors have failed in a row, and none of them had registered with the driver;"
                + " the last failure: " + lastFailure;
        }
        // Others that started before the exclusion may work.
        if (hasWorked || !areAllExcluded || live > 0) {
            return null;
        }
        return "no executor could be started, and all agents are excluded; the last failure: " + lastFailure;
    }
}
