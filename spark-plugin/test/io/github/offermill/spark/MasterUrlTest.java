package io.github.offermill.spark;

/** Goal: masters are understood, and those that can't be are refused with a sentence. Method: some of each. */
final class MasterUrlTest {
    private MasterUrlTest() {}

    public static void main(String[] arguments) {
        Check.same(true, MasterUrl.isOne("spark-offermill:local[*]"));
        Check.same(true, MasterUrl.isOne("offermill:local[*]"));
        Check.same(false, MasterUrl.isOne("mesos://h:5050"));
        Check.same("mesos://h:5050", MasterUrl.cluster("spark-offermill:mesos://h:5050"));
        Check.same("local[2]", MasterUrl.cluster("offermill: local[2] "));
        refused("such as spark-offermill:local[*]", "spark-offermill:");
        refused("on Kubernetes Offermill doesn't run Spark's executors", "offermill:k8s://h:6443");
        refused("isn't Offermill's", "local");
    }

    private static void refused(String why, String master) {
        Check.contains(why, Check.refused(() -> MasterUrl.cluster(master)));
    }
}
