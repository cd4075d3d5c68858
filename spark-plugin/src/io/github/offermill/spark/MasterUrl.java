package io.github.offermill.spark;

/**
 * Master URLs of Spark that mean Offermill: <code>spark-offermill:CLUSTER</code>, which spark-submit lets pass as it
 * begins with "spark", and <code>offermill:CLUSTER</code>, which only programs can set.
 */
final class MasterUrl {
    private static final String[] SCHEMES = {"spark-offermill:", "offermill:"};

    private MasterUrl() {}

    static boolean isOne(String master) {
        for (String scheme : SCHEMES) {
            if (master.startsWith(scheme)) {
                return true;
            }
        }
        return false;
    }

    /**
     * What <code>offermill run --master</code> takes.
     *
     * @throws IllegalArgumentException if it is no cluster, or one on which Offermill doesn't run Spark's executors
     */
    static String cluster(String master) {
        for (String scheme : SCHEMES) {
            if (master.startsWith(scheme)) {
                String cluster = master.substring(scheme.length()).trim();
                if (cluster.isEmpty()) {
                    throw new IllegalArgumentException("the master is \"" + master + "\", but must be " + scheme
                        + "CLUSTER, such as " + scheme + "local[*] or " + scheme + "mesos://HOST:5050");
                }
                if (cluster.startsWith("k8s:")) {
                    throw new IllegalArgumentException("the master is \"" + master + "\", but on Kubernetes Offermill doesn't"
                        + " run Spark's executors; Spark itself does, with the master k8s://HOST:PORT");
                }
                return cluster;
            }
        }
        throw new IllegalArgumentException("the master is \"" + master + "\", which isn't Offermill's");
    }
}
