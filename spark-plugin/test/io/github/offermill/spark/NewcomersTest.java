package io.github.offermill.spark;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Goal: executors that don't register are ended, once, and no others. Method: executors that register before and after
 * they are said to run, that end, and that do neither.
 */
final class NewcomersTest {
    private NewcomersTest() {}

    public static void main(String[] arguments) throws Exception {
        BlockingQueue<String> ended = new LinkedBlockingQueue<>();
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
        Newcomers newcomers = new Newcomers(500, ended::add, timer);
        newcomers.registered("0");
        for (String executor : new String[] {"0", "1", "2", "3", "3"}) {
            newcomers.runs(executor);
        }
        newcomers.registered("1");
        newcomers.ended("2");
        Check.same("3", ended.poll(10, TimeUnit.SECONDS));
        newcomers.runs("4");
        Check.same("4", ended.poll(10, TimeUnit.SECONDS));
        Check.same(null, ended.poll());
        timer.shutdownNow();
    }
}
