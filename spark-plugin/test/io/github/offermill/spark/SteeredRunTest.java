package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Goal: a child that is another program, of another release, dead or silent leaves nothing waiting, and says why.
 * Method: shell scripts in the place of the program.
 */
final class SteeredRunTest {
    private static final String STARTED = "echo '{\"event\":\"started\",\"protocol\":1}'; ";
    private static final String REGISTERED = "echo '{\"event\":\"registered\",\"framework_id\":\"f-1\"}'; ";
    private static final List<String> EVENTS = Collections.synchronizedList(new ArrayList<>());

    private SteeredRunTest() {}

    public static void main(String[] arguments) throws Exception {
        answers();
        ends();
        others();
        silence();
        interrupts();
    }

    private static SteeredRun run(String script) throws Exception {
        EVENTS.clear();
        return new SteeredRun(Arrays.asList("sh", "-c", "read settings; " + script), "settings\n", event -> {
            EVENTS.add(event.path("event").asText());
            if (event.path("event").asText().equals("bad")) {
                throw new IllegalStateException("a mistake of the listener");
            } else if (event.path("event").asText().equals("worse")) {
                throw new StackOverflowError("a mistake of the listener");
            } else if (event.path("event").asText().equals("strange")) {
                throw new NoSuchMethodError("Spark.other()");
            }
        });
    }

    private static <T> T get(Future<T> future) throws Exception {
        return future.get(10, TimeUnit.SECONDS);
    }

    private static String failure(Future<?> future) throws Exception {
        try {
            get(future);
        } catch (ExecutionException failure) {
            return failure.getCause().getMessage();
        }
        throw new AssertionError("it didn't fail");
    }

    /** Answers find their commands in any order; a failure of the listener doesn't stop the events. */
    private static void answers() throws Exception {
        String answer = "echo '{\"event\":\"answer\",\"id\":\"'$1'\",\"ok\":true,\"answer\":\"'$2'\"}'; ";
        SteeredRun run = run(STARTED + "echo '{\"event\":\"bad\"}'; echo '{\"event\":\"worse\"}'; "
            + REGISTERED
            + "test $settings = settings && read one && read two && read three; "
            + "say() { " + answer + "}; say 2 b; say 77 x; say 1 a; cat > /dev/null");
        CompletableFuture<JsonNode> first = run.send("limit 2");
        CompletableFuture<JsonNode> second = run.send("kill 4");
        Check.same("f-1", get(run.registered()));
        run.send("status");
        Check.same("a", get(first).path("answer").asText());
        Check.same("b", get(second).path("answer").asText());
        Check.same(false, run.awaitEnd(0));
        CompletableFuture<JsonNode> none = run.send("limit 3");
        CompletableFuture<Boolean> wasTold = run.ended().thenApply(why -> none.isDone());
        run.close();
        Check.same("it ended with exit code 0", get(run.ended()));
        // Nobody who learns of the end finds somebody who still waits for an answer.
        Check.same(true, get(wasTold));
        Check.same("offermill has ended", failure(none));
        Check.same("offermill has ended", failure(run.send("limit 4")));
        Check.same("[started, bad, worse, registered, answer, answer, answer]", EVENTS.toString());
    }

    /** A child that ends says why, in all futures. */
    private static void ends() throws Exception {
        SteeredRun run = run("echo 'offermill: no such setting' >&2; exit 2");
        Check.same("it ended with exit code 2\n  offermill: no such setting", failure(run.started()));
        Check.same("it ended with exit code 2\n  offermill: no such setting", failure(run.registered()));
        run = run(STARTED + "echo '{\"event\":\"summary\",\"ending\":\"refused\"}'; exit 4");
        get(run.started());
        Check.same("it ended with exit code 4: refused", failure(run.registered()));
        run = run(STARTED + REGISTERED + "kill -9 $$");
        get(run.registered());
        Check.same("it ended by signal 9", get(run.ended()));
    }

    /** Another program, or another release. */
    private static void others() throws Exception {
        Check.contains("isn't JSON", failure(run("echo hello; exec sleep 100").started()));
        SteeredRun run = run("echo '{\"event\":\"totals\"}'; exec sleep 100");
        Check.contains("first line isn't that", failure(run.started()));
        run = run("echo '{\"event\":\"started\",\"protocol\":2}'; exec sleep 100");
        Check.contains("it speaks protocol 2, but this plug-in 1", failure(run.started()));
        Check.same(true, run.awaitEnd(10_000));
        run = run(STARTED + "echo '{\"event\":\"strange\"}'; exec sleep 100");
        Check.contains("isn't for this release of Spark: java.lang.NoSuchMethodError", failure(run.registered()));
        Check.contains("isn't for this release of Spark", get(run.ended()));
        Check.contains("protocol 0", failure(run("echo '{\"event\":\"started\"}'; exec sleep 100").registered()));
    }

    /** A child that hangs holds nobody up, and can be killed. */
    private static void silence() throws Exception {
        SteeredRun run = run("exec sleep 100");
        StringBuilder hosts = new StringBuilder();
        for (int host = 0; host < 6_000; host++) {
            hosts.append(" host-").append(host).append("=1");
        }
        // More than a pipe holds.
        for (int time = 0; time < 5; time++) {
            run.send("limit 1 locality" + hosts);
        }
        try {
            run.started().get(300, TimeUnit.MILLISECONDS);
            throw new AssertionError("it has started");
        } catch (TimeoutException silent) {
            Check.same(false, run.awaitEnd(0));
        }
        run.kill();
        Check.contains("it ended by signal 9", get(run.ended()));
    }

    /** An interrupted thread gives a child its time to end, before an interrupt and after one. */
    private static void interrupts() throws Exception {
        String slow = STARTED + "while read line; do case $line in *stop) sleep 1; exit 7;; esac; done";
        SteeredRun run = run(slow);
        Thread.currentThread().interrupt();
        run.stop(() -> 1, 100, 10_000, 10_000);
        Check.same(true, Thread.interrupted());
        Check.same("it ended with exit code 7", get(run.ended()));
        // One that comes during a wait: the child ends as its input does.
        SteeredRun deaf = run(STARTED + "while read line; do :; done; sleep 1; exit 8");
        Thread stopping = Thread.currentThread();
        Thread interrupter = new Thread(() -> {
            deaf.awaitEnd(500);
            stopping.interrupt();
        });
        interrupter.start();
        long before = System.nanoTime();
        deaf.stop(() -> 0, 100, 60_000, 10_000);
        Check.same(true, Thread.interrupted());
        Check.same("it ended with exit code 8", get(deaf.ended()));
        Check.same(true, System.nanoTime() - before < TimeUnit.SECONDS.toNanos(20));
        interrupter.join();
    }
}
