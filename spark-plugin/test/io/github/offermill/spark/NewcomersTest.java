package io.github.offermill.spark;

import java.util.ArrayList;
import java.util.List;

/**
 * Goal: executors that don't register are ended, once, and no others. Method: executors that register before and after
 * they are said to run, that end, and that do neither.
 */
final class NewcomersTest {
    private NewcomersTest() {}

    public static void main(String[] arguments) {
        List<String> ended = new ArrayList<>();
        ManualTimer timer = new ManualTimer();
        Newcomers newcomers = new Newcomers(500, ended::add, timer);
        newcomers.registered("0");
        for (String executor : new String[] {"0", "1", "2", "3", "3"}) {
            newcomers.runs(executor);
        }
        timer.pass(499);
        newcomers.registered("1");
        newcomers.ended("2");
        Check.same("[]", ended.toString());
        timer.pass(1);
        Check.same("[3]", ended.toString());
        newcomers.runs("4");
        timer.pass(10_000);
        Check.same("[3, 4]", ended.toString());
    }
}
