package io.github.offermill.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.network.util.JavaUtils;

/**
 * The settings of <code>offermill run</code>, made of those of Spark. They go by its standard input: others can read
 * argument lists, and no file with secrets can be left. Offermill ignores what it doesn't know, so all settings are
 * passed on except those that mean something else there.
 */
final class RunSettings {
    /** Keys of Offermill itself: spark-submit drops all keys but those that begin with "spark.". */
    private static final String OWN = "spark.offermill.";
    /** As long as a driver waits for a standalone master. */
    private static final String REGISTRATION_TIMEOUT = "60s";
    private static final String REGISTRATION_OF_EXECUTORS = "spark.offermill.executorRegistrationTimeout";
    private static final int NAME_BYTES_MAX = 190;
    /** Spark's name of the least overhead, and its default in MiB. */
    private static final String OVERHEAD_MIN = "spark.executor.minMemoryOverhead";
    private static final long OVERHEAD_MIN_DEFAULT = 384;
    /** What the keys of executors' resources begin and end with. */
    private static final String RESOURCE = "spark.executor.resource.";
    private static final String AMOUNT = ".amount";
    /** The most failures of executors, by its names. */
    private static final String FAILURES_MAX = "spark.executor.maxNumFailures";
    private static final String FAILURES_MAX_YARN = "spark.yarn.max.executor.failures";
    /** Whether agents are excluded on which executors fail, by its names. */
    private static final String EXCLUDES = "spark.excludeOnFailure.enabled";
    private static final String EXCLUDES_OLD = "spark.blacklist.enabled";
    /** Settings of the driver alone; secrets are among them. */
    private static final String[] LEFT_OUT = {
        "spark.archives", "spark.driver.", "spark.dynamicAllocation.", "spark.eventLog.", "spark.files",
        "spark.hadoop.", "spark.history.", "spark.jars", "spark.kubernetes.", "spark.master", "spark.plugins",
        "spark.repl.",
        "spark.sql.", "spark.submit.", "spark.ui.", "spark.yarn.",
        // These are computed here.
        "spark.app.id", "spark.app.name", "spark.executor.memoryOverhead", "spark.executor.pyspark.memory",
        "spark.memory.",
        // Spark has put them into extraJavaOptions already.
        "spark.executor.defaultJavaOptions",
    };
    /** Keys that begin like one of those, but are Offermill's business. */
    private static final String[] KEPT = {"spark.executor.memoryOverheadFactor", FAILURES_MAX_YARN,
        "spark.yarn.executor.failuresValidityInterval"};

    private final Map<String, String> spark;
    private final String cluster;

    /**
     * @param spark the settings of a SparkContext, by key
     * @param cluster what Offermill's master is
     */
    RunSettings(Map<String, String> spark, String cluster) {
        this.spark = spark;
        this.cluster = cluster;
    }

    /** Whether the user says how many executors may fail. */
    boolean limitsFailures() {
        return spark.containsKey(FAILURES_MAX) || spark.containsKey(FAILURES_MAX_YARN);
    }

    /** Whether Spark requests executors itself, so that none is started before. */
    boolean isDynamic() {
        return Boolean.parseBoolean(spark.getOrDefault("spark.dynamicAllocation.enabled", "false").trim());
    }

    /**
     * How many executors Spark's jobs wait for, as far as it is known before they start; 0 if it isn't.
     *
     * @throws IllegalArgumentException if one of the settings isn't a number
     */
    int executorsExpected() {
        int expected = 0;
        if (isDynamic()) {
            for (String name : new String[] {"minExecutors", "initialExecutors"}) {
                expected = Math.max(expected, number("spark.dynamicAllocation." + name, 0));
            }
            return Math.max(expected, number("spark.executor.instances", 0));
        }
        expected = number("spark.executor.instances", 0);
        int coresMax = number("spark.cores.max", 0);
        int cores = number("spark.executor.cores", 0);
        if (coresMax > 0 && cores > 0) {
            int fit = coresMax / cores;
            return expected == 0 ? fit : Math.min(expected, fit);
        }
        return expected;
    }

    /** How long executors have to end, in ms. */
    long shutdownTimeoutMillis() {
        return millis("spark.mesos.coarse.shutdownTimeout", "10s");
    }

    /** How long executors that run have to register with the driver, in ms. */
    long executorRegistrationMillis() {
        return millis(REGISTRATION_OF_EXECUTORS, "10min");
    }

    private long millis(String key, String otherwise) {
        try {
            return JavaUtils.timeStringAsMs(spark.getOrDefault(key, otherwise));
        } catch (NumberFormatException odd) {
            throw new IllegalArgumentException(key + ": " + odd.getMessage(), odd);
        }
    }

    /** The arguments, after the program. */
    List<String> arguments(String driverUrl) {
        List<String> arguments = new ArrayList<>();
        arguments.add("run");
        arguments.add("--steered");
        arguments.add("--master=" + cluster);
        arguments.add("--spark-driver=" + driverUrl);
        arguments.add("--properties-file=-");
        if (isDynamic()) {
            arguments.add("--num-executors=0");
        }
        return arguments;
    }

    /**
     * The settings as properties, with the line that ends them.
     *
     * @param user who Spark's user is
     * @throws IllegalArgumentException if one of the settings can't be read
     */
    String properties(String user) {
        StringBuilder text = new StringBuilder();
        for (Map.Entry<String, String> one : all(user).entrySet()) {
            text.append(escaped(one.getKey())).append('=').append(escaped(one.getValue())).append('\n');
        }
        return text.append("# end of settings\n").toString();
    }

    /** All settings that Offermill gets, by key. */
    Map<String, String> all(String user) {
        Map<String, String> all = new TreeMap<>();
        // Spark's driver has put them into extraJavaOptions already.
        all.put("offermill.spark.moduleOptions", "false");
        all.put("offermill.spark.user", user);
        all.put("offermill.registrationTimeout", REGISTRATION_TIMEOUT);
        all.put("spark.app.name", name(spark.getOrDefault("spark.app.name", "")));
        for (Map.Entry<String, String> one : spark.entrySet()) {
            String key = one.getKey();
            if (key.equals(Binary.KEY) || key.equals(REGISTRATION_OF_EXECUTORS)) {
                continue;
            }
            if (key.startsWith(OWN)) {
                all.put(key.substring("spark.".length()), one.getValue());
            } else if (key.startsWith("spark.") && !isLeftOut(key)) {
                all.put(key, one.getValue());
            }
        }
        if (isDynamic()) {
            all.remove("spark.executor.instances");
        }
        failuresMax(all);
        exclusion(all);
        gpus(all);
        Long overhead = overhead();
        if (overhead != null) {
            all.put("spark.mesos.executor.memoryOverhead", overhead + "m");
        }
        return all;
    }

    private static boolean isLeftOut(String key) {
        for (String kept : KEPT) {
            if (key.equals(kept)) {
                return false;
            }
        }
        for (String beginning : LEFT_OUT) {
            if (key.startsWith(beginning)) {
                return true;
            }
        }
        return false;
    }

    /**
     * How many executors may fail. Offermill's default comes from the number of executors. With dynamic allocation that
     * is 0 at first: then it comes from the largest number, as in Spark. Where the number isn't known it would be 3,
     * too few for a large application: then there is practically no limit but that on failures in a row.
     */
    private void failuresMax(Map<String, String> all) {
        if (!limitsFailures() && (isDynamic() || executorsExpected() == 0)) {
            int unknown = Integer.MAX_VALUE;
            long executors = isDynamic() ? number("spark.dynamicAllocation.maxExecutors", unknown) : unknown;
            all.put(FAILURES_MAX, Long.toString(Math.max(3, 2 * executors)));
        }
    }

    /**
     * Local agents are all this machine: none of them can be worse than another, and if a task ends executors, excluding
     * agents would only leave the application without any. So, unlike elsewhere, none is excluded by default.
     */
    private void exclusion(Map<String, String> all) {
        boolean isLocal = cluster.equals("local") || cluster.startsWith("local[") || cluster.startsWith("local-cluster[");
        if (isLocal && !all.containsKey(EXCLUDES_OLD)) {
            all.putIfAbsent(EXCLUDES, "false");
        }
    }

    /**
     * The GPUs of executors, in the terms of Spark's backend for Mesos. Other resources can't be had.
     *
     * @throws IllegalArgumentException if others are wanted, or the number of GPUs isn't one
     */
    private void gpus(Map<String, String> all) {
        for (String key : spark.keySet()) {
            if (!key.startsWith(RESOURCE) || !key.endsWith(AMOUNT) || number(key, 0) == 0) {
                continue;
            }
            if (!key.equals(RESOURCE + "gpu" + AMOUNT)) {
                throw new IllegalArgumentException(key + " can't be had: of such resources Offermill has gpu alone");
            }
            all.putIfAbsent("spark.mesos.executor.gpus", Integer.toString(number(key, 0)));
            // Without it there would be none.
            all.putIfAbsent("spark.mesos.gpus.max", Integer.toString(Integer.MAX_VALUE));
        }
    }

    /** All memory of an executor beside its heap, in MiB; null if Offermill's default is right. */
    private Long overhead() {
        String mesos = spark.get("spark.mesos.executor.memoryOverhead");
        String given = mesos != null ? mesos : spark.get("spark.executor.memoryOverhead");
        boolean isOffHeap = Boolean.parseBoolean(spark.getOrDefault("spark.memory.offHeap.enabled", "false").trim());
        long others = isOffHeap ? mebibytes("spark.memory.offHeap.size", "0", true) : 0;
        others += mebibytes("spark.executor.pyspark.memory", "0", false);
        if (given != null) {
            String key = mesos != null ? "spark.mesos.executor.memoryOverhead" : "spark.executor.memoryOverhead";
            return mebibytes(key, given, false) + others;
        }
        if (others == 0 && !spark.containsKey(OVERHEAD_MIN)) {
            return null;
        }
        long least = mebibytes(OVERHEAD_MIN, OVERHEAD_MIN_DEFAULT + "m", false);
        String key = "spark.executor.memoryOverheadFactor";
        try {
            double factor = Double.parseDouble(spark.getOrDefault(key, "0.1").trim());
            long memory = mebibytes("spark.executor.memory", "1g", false);
            return Math.max((long) (factor * memory), least) + others;
        } catch (NumberFormatException odd) {
            throw new IllegalArgumentException(key + " is \"" + spark.get(key) + "\", but must be a number", odd);
        }
    }

    private long mebibytes(String key, String otherwise, boolean isBytes) {
        String text = spark.getOrDefault(key, otherwise);
        try {
            if (!isBytes) {
                return JavaUtils.byteStringAsMb(text);
            }
            long unit = 1 << 20;
            return (JavaUtils.byteStringAsBytes(text) + unit - 1) / unit;
        } catch (NumberFormatException odd) {
            throw new IllegalArgumentException(key + ": " + odd.getMessage(), odd);
        }
    }

    private int number(String key, int otherwise) {
        String text = spark.get(key);
        if (text == null) {
            return otherwise;
        }
        try {
            return Integer.parseInt(text.trim());
        } catch (NumberFormatException odd) {
            throw new IllegalArgumentException(key + " is \"" + text + "\", but must be a whole number", odd);
        }
    }

    /** A name that a framework can have: of at most so many bytes, and without slashes and control characters. */
    private static String name(String given) {
        StringBuilder name = new StringBuilder();
        int bytes = 0;
        for (int at = 0; at < given.length(); ) {
            int character = given.codePointAt(at);
            at += Character.charCount(character);
            boolean isOdd = Character.isISOControl(character) || character == '/' || character == '\\'
                || Character.getType(character) == Character.SURROGATE;
            String text = isOdd ? "_" : new String(Character.toChars(character));
            bytes += text.getBytes(StandardCharsets.UTF_8).length;
            if (bytes > NAME_BYTES_MAX) {
                break;
            }
            name.append(text);
        }
        return name.length() == 0 ? "spark" : name.toString();
    }

    /** A key or a value as Java's properties files have it, in UTF-8. */
    private static String escaped(String text) {
        StringBuilder escaped = new StringBuilder();
        for (int at = 0; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '\n') {
                escaped.append("\\n");
            } else if (c == '\r') {
                escaped.append("\\r");
            } else if (c < ' ' || c == 0x7f) {
                escaped.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else if (c == '\\' || c == '=' || c == ':' || c == '#' || c == '!' || c == ' ') {
                escaped.append('\\').append(c);
            } else {
                escaped.append(c);
            }
        }
        return escaped.toString();
    }
}
