package io.github.offermill.spark;

import org.apache.spark.SparkException;

/** Throws Spark's exceptions out of methods that declare none, as Scala does. */
final class Thrown {
    private Thrown() {}

    /** Never returns; <code>throw Thrown.spark(…)</code> tells the compiler so. */
    static RuntimeException spark(String message, Throwable cause) {
        throw Thrown.<RuntimeException>unchecked(new SparkException(message, cause));
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E unchecked(Throwable thrown) throws E {
        throw (E) thrown;
    }
}
