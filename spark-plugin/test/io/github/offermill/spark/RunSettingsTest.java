package io.github.offermill.spark;

import java.util.HashMap;
import java.util.Map;

/** Goal: Offermill gets Spark's settings in its own terms. Method: settings of drivers, and what is made of them. */
final class RunSettingsTest {
    private RunSettingsTest() {}

    private static RunSettings of(String... pairs) {
        Map<String, String> settings = new HashMap<>();
        for (int at = 0; at < pairs.length; at += 2) {
            settings.put(pairs[at], pairs[at + 1]);
        }
        return new RunSettings(settings, "mesos://h");
    }

    private static String made(String key, String... pairs) {
        return of(pairs).all("me").get(key);
    }

    public static void main(String[] arguments) {
        settings();
        overheads();
        dynamicAllocation();
        exclusion();
        resources();
        expectations();
        text();
    }

    private static void settings() {
        Check.same("10s", made("offermill.reviveInterval", "spark.offermill.reviveInterval", "10s"));
        Check.same("60s", made("offermill.registrationTimeout"));
        Check.same("never", made("offermill.registrationTimeout", "spark.offermill.registrationTimeout", "never"));
        String registration = "spark.offermill.executorRegistrationTimeout";
        Check.same(null, made("offermill.executorRegistrationTimeout", registration, "5s"));
        Check.same(5_000L, of(registration, "5s").executorRegistrationMillis());
        Check.contains(registration + ": ", Check.refused(() -> of(registration, "x").executorRegistrationMillis()));
        Check.same("false", made("offermill.spark.moduleOptions"));
        Check.same("me", made("offermill.spark.user"));
        Check.same("4", made("spark.executor.instances", "spark.executor.instances", "4"));
        Check.same("zone:east", made("spark.mesos.constraints", "spark.mesos.constraints", "zone:east"));
        for (String key : new String[] {"spark.hadoop.fs.s3a.secret.key", "spark.sql.shuffle.partitions",
            "spark.master", "spark.executor.defaultJavaOptions", "spark.offermill.binary", "offermill.binary",
            "spark.driver.memory"}) {
            Check.same(null, made(key, key, "x"));
        }
        Check.same("a_b_c", made("spark.app.name", "spark.app.name", "a/b\nc"));
        Check.same("spark", made("spark.app.name"));
        String umlauts = new String(new char[100]).replace("\0", "ü");
        Check.same(umlauts.substring(0, 95), made("spark.app.name", "spark.app.name", umlauts));
    }

    private static void overheads() {
        String key = "spark.mesos.executor.memoryOverhead";
        Check.same(null, made(key, "spark.executor.memory", "8g"));
        Check.same("512m", made(key, "spark.executor.memoryOverhead", "512"));
        Check.same("700m", made(key, "spark.executor.memoryOverhead", "512", key, "700m"));
        String[] offHeap = {"spark.memory.offHeap.enabled", "true", "spark.memory.offHeap.size", "1g",
            "spark.executor.pyspark.memory", "100m"};
        Check.same((384 + 1024 + 100) + "m", made(key, offHeap));
        Check.same("100m", made(key, "spark.memory.offHeap.size", "1g", "spark.executor.memoryOverhead", "100m"));
        Check.same("2048m", made(key, "spark.executor.minMemoryOverhead", "1m", "spark.executor.memory", "4g",
            "spark.executor.memoryOverheadFactor", "0.5"));
        String wrong = Check.refused(() -> made(key, "spark.executor.memoryOverhead", "much"));
        Check.contains("spark.executor.memoryOverhead: ", wrong);
        wrong = Check.refused(() -> made(key, "spark.executor.minMemoryOverhead", "1m",
            "spark.executor.memoryOverheadFactor", "x"));
        Check.contains("spark.executor.memoryOverheadFactor is \"x\", but must be a number", wrong);
    }

    private static void dynamicAllocation() {
        String[] dynamic = {"spark.dynamicAllocation.enabled", "true", "spark.executor.instances", "2"};
        Check.same(null, made("spark.dynamicAllocation.enabled", dynamic));
        Check.same(null, made("spark.executor.instances", dynamic));
        Check.same(true, of(dynamic).arguments("spark://").contains("--num-executors=0"));
        Check.same(false, of().arguments("spark://").contains("--num-executors=0"));
        String failures = "spark.executor.maxNumFailures";
        Check.same(Long.toString(2L * Integer.MAX_VALUE), made(failures, dynamic));
        Check.same("40", made(failures, "spark.dynamicAllocation.enabled", "true",
            "spark.dynamicAllocation.maxExecutors", "20"));
        Check.same("7", made(failures, "spark.dynamicAllocation.enabled", "true", failures, "7"));
        String unlimited = Long.toString(2L * Integer.MAX_VALUE);
        Check.same(unlimited, made(failures));
        Check.same(unlimited, made(failures, "spark.cores.max", "200"));
        Check.same(null, made(failures, "spark.cores.max", "200", "spark.executor.cores", "2"));
        Check.same(null, made(failures, "spark.executor.instances", "4"));
        Check.same("5", made(failures, failures, "5"));
        Check.same(null, made(failures, "spark.yarn.max.executor.failures", "5"));
    }

    /** Local agents aren't excluded, unless they are to be. */
    private static void exclusion() {
        String key = "spark.excludeOnFailure.enabled";
        Check.same(null, made(key));
        for (String cluster : new String[] {"local", "local[*]", "local[2]", "local-cluster[3,2,1024]"}) {
            Map<String, String> given = new HashMap<>();
            Check.same("false", new RunSettings(given, cluster).all("me").get(key));
            given.put("spark.blacklist.enabled", "true");
            Check.same(null, new RunSettings(given, cluster).all("me").get(key));
            given.put(key, "true");
            Check.same("true", new RunSettings(given, cluster).all("me").get(key));
        }
    }

    private static void resources() {
        String gpu = "spark.executor.resource.gpu.amount";
        String mesos = "spark.mesos.executor.gpus";
        Check.same(null, made(mesos));
        Check.same(null, made("spark.mesos.gpus.max", gpu, "0"));
        Check.same("2", made(mesos, gpu, "2"));
        Check.same("2147483647", made("spark.mesos.gpus.max", gpu, "2"));
        Check.same("3", made(mesos, gpu, "2", mesos, "3"));
        Check.same("8", made("spark.mesos.gpus.max", gpu, "2", "spark.mesos.gpus.max", "8"));
        Check.same(gpu + " is \"two\", but must be a whole number", Check.refused(() -> made(mesos, gpu, "two")));
        Check.same("spark.executor.resource.fpga.amount can't be had: of such resources Offermill has gpu alone",
            Check.refused(() -> made(mesos, "spark.executor.resource.fpga.amount", "1")));
    }

    private static void expectations() {
        Check.same(0, of().executorsExpected());
        Check.same(4, of("spark.executor.instances", "4").executorsExpected());
        Check.same(3, of("spark.executor.instances", "4", "spark.cores.max", "6", "spark.executor.cores", "2")
            .executorsExpected());
        Check.same(3, of("spark.cores.max", "7", "spark.executor.cores", "2").executorsExpected());
        Check.same(5, of("spark.dynamicAllocation.enabled", "true", "spark.dynamicAllocation.minExecutors", "1",
            "spark.dynamicAllocation.initialExecutors", "5").executorsExpected());
        String wrong = Check.refused(() -> of("spark.executor.instances", "many").executorsExpected());
        Check.same("spark.executor.instances is \"many\", but must be a whole number", wrong);
    }

    private static void text() {
        String[] odd = {"spark.executorEnv.A B", " x=\\y:\n\u0001ü😀"};
        String text = of(odd).properties("me");
        Check.contains("spark.executorEnv.A\\ B=\\ x\\=\\\\y\\:\\n\\u0001ü😀\n", text);
        Check.same(true, text.endsWith("\n# end of settings\n"));
        Check.same("mesos://h:5050", MasterUrl.cluster("spark-offermill:mesos://h:5050"));
        Check.same("local[*]", MasterUrl.cluster("offermill:local[*]"));
        Check.same(false, MasterUrl.isOne("mesos://h:5050"));
        Check.contains("such as spark-offermill:local[*]", Check.refused(() -> MasterUrl.cluster("spark-offermill:")));
        Check.contains("isn't in PATH", Check.refused(() -> Binary.find(null, "/nowhere:")));
        Check.contains("spark.offermill.binary is \"/etc\"", Check.refused(() -> Binary.find("/etc", "/bin")));
    }
}
