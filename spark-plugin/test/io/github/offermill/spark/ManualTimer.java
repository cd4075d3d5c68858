package io.github.offermill.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** A timer whose time passes when a test says so: no test depends on how fast the machine is. It has no thread. */
final class ManualTimer extends ScheduledThreadPoolExecutor {
    private final List<Task> tasks = new ArrayList<>();
    private long now = 0;

    ManualTimer() {
        super(1);
    }

    @Override
    public ScheduledFuture<?> schedule(Runnable body, long delay, TimeUnit unit) {
        tasks.add(new Task(now + unit.toMillis(delay), body));
        return null;
    }

    /** Lets time pass, and executes what is due meanwhile, the earliest first. */
    void pass(long millis) {
        long end = now + millis;
        for (Task next = next(end); next != null; next = next(end)) {
            tasks.remove(next);
            now = next.due;
            next.body.run();
        }
        now = end;
    }

    /** Those that are due at the same time come in the order in which they were scheduled. */
    private Task next(long end) {
        Task first = null;
        for (Task task : tasks) {
            if (task.due <= end && (first == null || task.due < first.due)) {
                first = task;
            }
        }
        return first;
    }

    private static final class Task {
        final long due;
        final Runnable body;

        Task(long due, Runnable body) {
            this.due = due;
            this.body = body;
        }
    }
}
