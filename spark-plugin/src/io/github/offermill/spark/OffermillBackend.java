package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkContext;
import org.apache.spark.deploy.security.HadoopDelegationTokenManager;
import org.apache.spark.resource.ResourceProfile;
import org.apache.spark.rpc.RpcAddress;
import org.apache.spark.rpc.RpcEndpointAddress;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.concurrent.Future;
import scala.concurrent.Promise;

/**
 * The part of a Spark driver that gets executors: from a child process <code>offermill run</code>, which is steered.
 *
 * <p>Spark 3.5 (Scala 2.12) and 4.x (2.13) load the same class. Where their methods differ there are both.
 */
public final class OffermillBackend extends CoarseGrainedSchedulerBackend {
    private static final Logger LOG = LoggerFactory.getLogger(OffermillBackend.class);
    /** The share of the expected executors that jobs wait for, as on Spark's other clusters. */
    private static final double REGISTERED_RATIO = 0.8;
    /** How long a child may take to read its settings. */
    private static final long START_SECONDS = 60;
    /** How long Spark's requests wait for an answer. */
    private static final long ANSWER_SECONDS = 30;
    /** How long after an answer a silent child is asked whether it still answers. */
    private static final long ASK_SECONDS = 30;
    /** How long executors may take to end by themselves, before they are asked to. */
    private static final long LEAVE_MILLIS = 3_000;
    /** What a child may need beyond the time that executors have. */
    private static final long END_MILLIS = 5_000;

    private final TaskSchedulerImpl scheduler;
    private final SparkContext context;
    private final String cluster;
    private final ScheduledExecutorService timer;
    private final AtomicBoolean isStopping = new AtomicBoolean();
    // The constructor above makes the endpoint, which may see them unset.
    private volatile Losses losses;
    private volatile SteeredRun run;
    private volatile String frameworkId;
    private volatile int expected;
    private volatile long shutdownMillis;
    private volatile Prospects prospects;
    private volatile Newcomers newcomers;

    OffermillBackend(TaskSchedulerImpl scheduler, SparkContext context, String cluster) {
        super(scheduler, context.env().rpcEnv());
        this.scheduler = scheduler;
        this.context = context;
        this.cluster = cluster;
        this.timer = Executors.newSingleThreadScheduledExecutor(body -> {
            Thread thread = new Thread(body, "offermill-timer");
            thread.setDaemon(true);
            return thread;
        });
        this.losses = new Losses(this::removeExecutor, timer);
    }

    @Override
    public void start() {
        super.start();
        context.addSparkListener(new Registrations());
        Map<String, String> given = new HashMap<>();
        for (Tuple2<String, String> one : context.conf().getAll()) {
            given.put(one._1(), one._2());
        }
        RunSettings settings = new RunSettings(given, cluster);
        prospects = new Prospects(!settings.limitsFailures());
        String driver = new RpcEndpointAddress(given.get("spark.driver.host"),
            Integer.parseInt(given.get("spark.driver.port")), CoarseGrainedSchedulerBackend.ENDPOINT_NAME()).toString();
        try {
            expected = settings.executorsExpected();
            shutdownMillis = settings.shutdownTimeoutMillis();
            long registration = settings.executorRegistrationMillis();
            newcomers = new Newcomers(registration, executor -> endHanging(executor, registration), timer);
            String properties = settings.properties(context.sparkUser());
            Path binary = Binary.find(given.get(Binary.KEY), System.getenv("PATH"));
            List<String> command = new ArrayList<>();
            command.add(binary.toString());
            command.addAll(settings.arguments(driver));
            run = new SteeredRun(command, properties, this::handle);
            frameworkId = registered(run, binary);
        } catch (IOException | IllegalArgumentException | IllegalStateException failure) {
            LOG.debug("Offermill could not be started", failure);
            // Not as a cause: users would read the same sentence twice.
            throw Thrown.spark("Offermill could not be started: " + failure.getMessage(), null);
        }
        LOG.info("Offermill has registered as {} on {}", frameworkId, cluster);
        new AnswerWatch(() -> run.send("help"), OffermillBackend::reportSilence, TimeUnit.SECONDS.toMillis(ASK_SECONDS),
            TimeUnit.SECONDS.toMillis(ANSWER_SECONDS), timer);
        // At once, if it has ended already.
        run.ended().thenAccept(this::fail);
    }

    private void endHanging(String executor, long millis) {
        LOG.warn("executor {} has been running for {} s without registering with this driver, and is ended: another one"
            + " takes its place", executor, TimeUnit.MILLISECONDS.toSeconds(millis));
        run.send("kill " + executor);
    }

    private static void reportSilence(boolean isSilent) {
        if (isSilent) {
            LOG.warn("Offermill is silent: it hasn't answered for {} s. Executors keep running, but none comes or is ended"
                + " until it answers", ANSWER_SECONDS);
        } else {
            LOG.warn("Offermill answers again");
        }
    }

    /** Waits until the cluster has accepted the framework. How long that may take is Offermill's own setting. */
    private String registered(SteeredRun run, Path binary) {
        try {
            run.started().get(START_SECONDS, TimeUnit.SECONDS);
            return run.registered().get();
        } catch (ExecutionException failure) {
            throw new IllegalStateException(binary + ": " + failure.getCause().getMessage());
        } catch (TimeoutException silent) {
            run.kill();
            throw new IllegalStateException(binary + ": it said nothing within " + START_SECONDS
                + " s; is it the program offermill?");
        } catch (InterruptedException interrupted) {
            run.kill();
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while Offermill registered");
        }
    }

    @Override
    public String applicationId() {
        String id = frameworkId;
        return id != null ? id : super.applicationId();
    }

    /** With Kerberos, Spark obtains delegation tokens and gives them to executors, as on clusters of its own. */
    @Override
    public Option<HadoopDelegationTokenManager> createTokenManager() {
        return Option.apply(new HadoopDelegationTokenManager(conf(), context.hadoopConfiguration(), driverEndpoint()));
    }

    @Override
    public double minRegisteredRatio() {
        String key = "spark.scheduler.minRegisteredResourcesRatio";
        return conf().contains(key) ? super.minRegisteredRatio() : REGISTERED_RATIO;
    }

    @Override
    public boolean sufficientResourcesRegistered() {
        return totalRegisteredExecutors().get() >= expected * minRegisteredRatio();
    }

    @Override
    public Future<Object> doRequestTotalExecutors(
            scala.collection.immutable.Map<ResourceProfile, Object> totals) {
        long total = 0;
        for (Iterator<Tuple2<ResourceProfile, Object>> all = totals.iterator(); all.hasNext(); ) {
            Tuple2<ResourceProfile, Object> one = all.next();
            int executors = ((Number) one._2()).intValue();
            if (one._1().id() == ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID()) {
                total = executors;
            } else if (executors > 0) {
                LOG.error("Offermill has one kind of executors, that of the settings: {} of resource profile {} can't"
                    + " be had", executors, one._1().id());
                return Future.successful((Object) false);
            }
        }
        return answer("limit " + total + locality());
    }

    /** The hosts at which tasks want to run, as words of a command. */
    private String locality() {
        Option<scala.collection.immutable.Map<String, Object>> hosts =
            rpHostToLocalTaskCount().get(ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID());
        StringBuilder words = new StringBuilder(" locality");
        if (hosts.isEmpty() || hosts.get().isEmpty()) {
            return words.append(" none").toString();
        }
        for (Iterator<Tuple2<String, Object>> all = hosts.get().iterator(); all.hasNext(); ) {
            Tuple2<String, Object> one = all.next();
            // A line has a limit, and hosts beyond it make no difference.
            if (words.length() < 60_000 && one._1().chars().noneMatch(Character::isWhitespace)) {
                words.append(' ').append(one._1()).append('=').append(one._2());
            }
        }
        return words.toString();
    }

    /** Ends executors, for Spark 3.5. */
    public Future<Object> doKillExecutors(scala.collection.Seq<String> executors) {
        return kill(executors.iterator());
    }

    /** Ends executors, for Spark 4. */
    public Future<Object> doKillExecutors(scala.collection.immutable.Seq<String> executors) {
        return kill(executors.iterator());
    }

    private Future<Object> kill(Iterator<String> executors) {
        StringBuilder command = new StringBuilder("kill");
        while (executors.hasNext()) {
            command.append(' ').append(executors.next());
        }
        return command.length() == "kill".length() ? Future.successful((Object) true) : answer(command.toString());
    }

    /** Sends a command, and tells Spark whether it was executed. */
    private Future<Object> answer(String command) {
        Promise<Object> promise = Promise.apply();
        SteeredRun child = run;
        if (child == null || isStopping.get()) {
            return Future.successful((Object) false);
        }
        child.send(command).whenComplete((event, failure) -> {
            boolean isDone = failure == null && event.path("ok").asBoolean();
            if (failure == null && !isDone) {
                LOG.warn("Offermill refused \"{}\": {}", command, event.path("answer").asText());
            }
            promise.trySuccess(isDone);
        });
        timer.schedule(() -> {
            if (promise.trySuccess(false)) {
                LOG.warn("Offermill hasn't answered \"{}\" within {} s", command, ANSWER_SECONDS);
            }
        }, ANSWER_SECONDS, TimeUnit.SECONDS);
        return promise.future();
    }

    /** An event of the run, on its thread. */
    private void handle(JsonNode event) {
        String executor = event.path("executor").asText();
        String host = event.path("host").asText();
        switch (event.path("event").asText()) {
            case "placed":
                losses.placed(executor);
                LOG.info("executor {} placed on {}", executor, host);
                break;
            case "running":
                newcomers.runs(executor);
                break;
            case "out_of_sight":
                losses.reachable(executor, false);
                LOG.warn("executor {} on {} may still run, but its agent is unreachable", executor, host);
                break;
            case "returned":
                losses.reachable(executor, true);
                break;
            case "ended":
                newcomers.ended(executor);
                LOG.info("executor {} {} on {}: {}", executor, event.path("state").asText(), host,
                    event.path("message").asText());
                if (!isStopping.get()) {
                    losses.ended(event);
                } else {
                    losses.left(executor);
                }
                break;
            case "waiting":
                // Before, it waits for the cluster, not for its offers. The start of this driver waits, too.
                if (frameworkId == null) {
                    break;
                }
                LOG.warn("Offermill waits for more executors: {}", misses(event));
                break;
            case "agent_lost":
                LOG.warn("agent {} on {} is lost", event.path("agent_id").asText(), host);
                break;
            case "disconnected":
                LOG.warn("Offermill is disconnected from the cluster; executors keep running");
                break;
            case "excluded":
                LOG.warn("agent {} on {} is excluded: {}", event.path("agent_id").asText(), host,
                    event.path("why").asText());
                break;
            case "left_out":
                run.send("status json").thenAccept(this::compare);
                break;
            default:
                break;
        }
        String over = prospects.over(event, losses.live());
        if (over != null) {
            fail(over);
        }
    }

    private static String misses(JsonNode event) {
        List<String> misses = new ArrayList<>();
        for (JsonNode miss : event.path("nearest_misses")) {
            misses.add(miss.path("host").asText() + ": " + miss.path("why").asText());
        }
        return misses.isEmpty() ? "the cluster offers nothing that has room" : String.join("; ", misses);
    }

    private void compare(JsonNode answer) {
        JsonNode status = answer.path("answer");
        if (!status.path("living").isArray() || status.path("living_not_listed").asInt() > 0) {
            LOG.warn("events of Offermill were left out; losses among them are noticed when connections close");
            return;
        }
        Set<String> known = new HashSet<>();
        for (JsonNode executor : status.path("living")) {
            known.add(executor.path("executor").asText());
        }
        losses.compare(known);
    }

    /**
     * The run has ended, or is of no use: so does the application, unless it stops anyhow. This has a thread of its
     * own: it takes the lock of Spark's scheduler, whose holder may wait for an answer of the run.
     */
    private void fail(String why) {
        if (!isStopping.get()) {
            Thread thread = new Thread(() -> failNow(why), "offermill-failure");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void failNow(String why) {
        String message = "Offermill gives no executors any more: " + why;
        LOG.error("{}", message);
        try {
            scheduler.error(message);
        } catch (Exception idle) {
            // Spark throws it if no job runs that could fail of it.
            LOG.debug("no job runs", idle);
        } finally {
            context.stopInNewThread();
        }
    }

    @Override
    public void stop() {
        if (!isStopping.compareAndSet(false, true)) {
            return;
        }
        SteeredRun child = run;
        // Spark's own part would tell no executor to end.
        boolean wasInterrupted = Thread.interrupted();
        try {
            if (child != null) {
                // Executors end with the driver, and none is to take their places.
                child.send("limit 0");
            }
            super.stop();
        } finally {
            if (child != null) {
                child.stop(losses::live, LEAVE_MILLIS, shutdownMillis + END_MILLIS, END_MILLIS);
            }
            timer.shutdownNow();
            if (wasInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    public DriverEndpoint createDriverEndpoint() {
        return new Endpoint();
    }

    /** Learns of executors that have registered, and of those that work. */
    private final class Registrations extends SparkListener {
        @Override
        public void onExecutorAdded(SparkListenerExecutorAdded added) {
            newcomers.registered(added.executorId());
            if (!isStopping.get()) {
                losses.registered(added.executorId(), added.executorInfo().executorHost());
            }
        }

        @Override
        public void onTaskStart(SparkListenerTaskStart start) {
            prospects.worked(start.taskInfo().executorId());
        }

        @Override
        public void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate heartbeat) {
            // The driver has one, too.
            if (!heartbeat.execId().equals("driver")) {
                prospects.worked(heartbeat.execId());
            }
        }
    }

    /** Spark's own endpoint, which waits for Offermill's reason if an executor's connection is closed. */
    private final class Endpoint extends DriverEndpoint {
        Endpoint() {
            OffermillBackend.this.super();
        }

        @Override
        public void onDisconnected(RpcAddress address) {
            Option<String> executor = addressToExecutorId().get(address);
            Losses known = losses;
            if (executor.isEmpty() || known == null || isStopping.get()) {
                super.onDisconnected(address);
            } else {
                // It does nothing for those that are decommissioned, whose reason is needed as well.
                disableExecutor(executor.get());
                known.disconnected(executor.get());
            }
        }
    }
}
