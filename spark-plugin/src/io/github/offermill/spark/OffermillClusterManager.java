package io.github.offermill.spark;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.ExternalClusterManager;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.TaskScheduler;
import org.apache.spark.scheduler.TaskSchedulerImpl;

/**
 * Gives Spark executors wherever Offermill runs. Spark finds this class by META-INF/services, and asks it about each
 * master URL that is none of its own.
 */
public final class OffermillClusterManager implements ExternalClusterManager {
    @Override
    public boolean canCreate(String master) {
        return MasterUrl.isOne(master);
    }

    @Override
    public TaskScheduler createTaskScheduler(SparkContext context, String master) {
        return new TaskSchedulerImpl(context);
    }

    @Override
    public SchedulerBackend createSchedulerBackend(SparkContext context, String master, TaskScheduler scheduler) {
        if ("cluster".equals(context.deployMode())) {
            throw Thrown.spark("Offermill starts executors, not drivers: --deploy-mode cluster isn't supported,"
                + " expected --deploy-mode client", null);
        }
        String cluster;
        try {
            cluster = MasterUrl.cluster(master);
        } catch (IllegalArgumentException wrong) {
            throw Thrown.spark(wrong.getMessage(), null);
        }
        return new OffermillBackend((TaskSchedulerImpl) scheduler, context, cluster);
    }

    @Override
    public void initialize(TaskScheduler scheduler, SchedulerBackend backend) {
        ((TaskSchedulerImpl) scheduler).initialize(backend);
    }
}
