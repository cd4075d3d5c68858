package io.github.offermill.spark;

import java.util.Objects;

/** What tests state. */
final class Check {
    private Check() {}

    static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError("expected: " + expected + "\n   found: " + found);
        }
    }

    static void contains(String part, String text) {
        if (!text.contains(part)) {
            throw new AssertionError("expected: " + part + "\n      in: " + text);
        }
    }

    /** The message with which something is refused. */
    static String refused(Runnable body) {
        try {
            body.run();
        } catch (IllegalArgumentException refusal) {
            return refusal.getMessage();
        }
        throw new AssertionError("it wasn't refused");
    }
}
