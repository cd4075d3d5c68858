package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Notices a child that lives and is silent: it is asked something small from time to time. Executors don't need it to
 * work, so the application goes on, and is only told.
 */
final class AnswerWatch {
    private final Supplier<CompletableFuture<JsonNode>> ask;
    private final Consumer<Boolean> changed;
    private final long waitMillis;
    private final ScheduledExecutorService timer;
    private boolean isSilent = false;

    /**
     * @param ask asks, and returns the answer to come
     * @param changed learns that the child is silent (true), and that it answers again (false)
     * @param everyMillis how long after an answer it is asked again
     * @param waitMillis how long an answer may take
     */
    AnswerWatch(Supplier<CompletableFuture<JsonNode>> ask, Consumer<Boolean> changed, long everyMillis, long waitMillis,
            ScheduledExecutorService timer) {
        this.ask = ask;
        this.changed = changed;
        this.waitMillis = waitMillis;
        this.timer = timer;
        next(everyMillis);
    }

    private void next(long everyMillis) {
        timer.schedule(() -> {
            CompletableFuture<JsonNode> answer = ask.get();
            timer.schedule(() -> {
                if (!answer.isDone()) {
                    set(true);
                }
            }, waitMillis, TimeUnit.MILLISECONDS);
            // A child that has ended answers no more, which others report.
            answer.thenAccept(event -> {
                set(false);
                if (!timer.isShutdown()) {
                    next(everyMillis);
                }
            });
        }, everyMillis, TimeUnit.MILLISECONDS);
    }

    private synchronized void set(boolean silent) {
        if (silent != isSilent) {
            isSilent = silent;
            changed.accept(silent);
        }
    }
}
