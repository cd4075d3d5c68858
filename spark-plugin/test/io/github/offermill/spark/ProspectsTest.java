package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Goal: an application without a working executor ends when the last of them has failed, and one whose executors worked
 * waits. Method: events in each order, with and without an executor that worked.
 */
final class ProspectsTest {
    private static final String FAILED = "ended\",\"state\":\"failed\",\"message\":\"exit code 1\",\"host\":\"h";
    private static final String WHY =
        "no executor could be started, and all agents are excluded; the last failure: exit code 1 on h";

    private ProspectsTest() {}

    public static void main(String[] arguments) throws Exception {
        Prospects prospects = new Prospects(true);
        Check.same(null, over(prospects, "placed", 1));
        Check.same(null, over(prospects, FAILED, 0));
        Check.same(WHY, over(prospects, "all_excluded", 0));
        // Another one still starts at the time of the exclusion, and fails later.
        prospects = new Prospects(true);
        Check.same(null, over(prospects, FAILED, 1));
        Check.same(null, over(prospects, "all_excluded", 1));
        Check.same(null, over(prospects, "waiting", 0));
        Check.same(WHY, over(prospects, FAILED, 0));
        // An agent has come back.
        prospects = new Prospects(true);
        Check.same(null, over(prospects, "all_excluded", 1));
        Check.same(null, over(prospects, "placed", 1));
        Check.same(null, over(prospects, FAILED, 0));
        // Executors have worked, and none does now.
        prospects = new Prospects(true);
        prospects.worked("");
        Check.same(null, over(prospects, FAILED, 0));
        Check.same(null, over(prospects, "all_excluded", 0));
        rows();
    }

    /** Failures in a row: ten of one executor at a time, twice as many as there are of many, and none that is wanted. */
    private static void rows() throws Exception {
        String row = " executors have failed in a row, and none of them had worked; the last failure: exit code 1 on h";
        Check.same(10 + row, afterFailures(new Prospects(true), 1, 10));
        Check.same(null, afterFailures(new Prospects(true), 1, 9));
        Check.same(60 + row, afterFailures(new Prospects(true), 30, 60));
        Check.same(null, afterFailures(new Prospects(true), 30, 59));
        Check.same(null, afterFailures(new Prospects(false), 1, 1000));
        // Others fail beside one that works, which is told once.
        Prospects beside = new Prospects(true);
        Check.same(null, beside.over(event("placed\",\"executor\":\"0"), 1));
        beside.worked("0");
        Check.same(null, afterFailures(beside, 2, 100));
        // What is told when it has ended doesn't count for more than the moment.
        Check.same(null, beside.over(event(FAILED + "\",\"executor\":\"0"), 0));
        beside.worked("0");
        Check.same(10 + row, afterFailures(beside, 1, 10));
        // One that works ends the row.
        Prospects prospects = new Prospects(true);
        afterFailures(prospects, 30, 9);
        prospects.worked("");
        Check.same(null, afterFailures(prospects, 1, 9));
        Check.same(10 + row, afterFailures(prospects, 1, 1));
    }

    private static String afterFailures(Prospects prospects, int live, int failures) throws Exception {
        String why = null;
        for (int failure = 0; failure < failures; failure++) {
            Check.same(null, why);
            Check.same(null, over(prospects, "placed", live));
            why = over(prospects, FAILED, live - 1);
        }
        return why;
    }

    private static String over(Prospects prospects, String event, int live) throws Exception {
        return prospects.over(event(event), live);
    }

    private static JsonNode event(String event) throws Exception {
        return new ObjectMapper().readTree("{\"event\":\"" + event + "\"}");
    }
}
