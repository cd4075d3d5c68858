package io.github.offermill.spark;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Executors whose processes run, and that haven't registered with Spark. One that hangs there would keep its place for
 * ever: Spark doesn't know it.
 */
final class Newcomers {
    private final long waitMillis;
    private final Consumer<String> end;
    private final ScheduledExecutorService timer;
    private final Set<String> awaited = new HashSet<>();
    /** Those that registered before they were said to run. */
    private final Set<String> early = new HashSet<>();

    /**
     * @param waitMillis how long they may take to register
     * @param end ends one of them
     */
    Newcomers(long waitMillis, Consumer<String> end, ScheduledExecutorService timer) {
        this.waitMillis = waitMillis;
        this.end = end;
        this.timer = timer;
    }

    /** The process of an executor runs. */
    synchronized void runs(String executor) {
        // Registrations may be faster than reports.
        if (!early.remove(executor) && awaited.add(executor)) {
            timer.schedule(() -> giveUp(executor), waitMillis, TimeUnit.MILLISECONDS);
        }
    }

    /** An executor has registered. */
    synchronized void registered(String executor) {
        if (!awaited.remove(executor)) {
            early.add(executor);
        }
    }

    /** An executor has ended. */
    synchronized void ended(String executor) {
        awaited.remove(executor);
        early.remove(executor);
    }

    private void giveUp(String executor) {
        synchronized (this) {
            if (!awaited.remove(executor)) {
                return;
            }
        }
        end.accept(executor);
    }
}
