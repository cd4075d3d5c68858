package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Queue;
import org.apache.spark.scheduler.ExecutorExited;
import org.apache.spark.scheduler.ExecutorLossReason;
import org.apache.spark.scheduler.ExecutorProcessLost;
import scala.Option;

/**
 * Goal: Spark gets one reason for each executor that is gone, whether its connection is closed before the report of its
 * end, after it, or never, and if the report never comes; also if it registers after that. A lost agent has the name
 * that Spark knows. Method: each order; reports of each cause.
 */
final class LossesTest {
    private static final Queue<String> REMOVED = new ArrayDeque<>();

    private LossesTest() {}

    public static void main(String[] arguments) throws Exception {
        reasons();
        ManualTimer timer = new ManualTimer();
        orders(new Losses((id, reason) -> REMOVED.add(id + " " + text(reason)), timer), timer);
    }

    private static void orders(Losses losses, ManualTimer timer) throws Exception {
        for (String executor : new String[] {"0", "1", "2", "3"}) {
            losses.placed(executor);
        }
        losses.disconnected("0");
        losses.disconnected("0");
        Check.same(null, REMOVED.poll());
        losses.ended(event("0", "exited", "\"exit_code\":7,\"message\":\"exit code 7\""));
        Check.same("0 exited 7 by app: exit code 7 on h", REMOVED.poll());
        losses.ended(event("1", "signaled", "\"signal\":9,\"message\":\"killed by signal 9 (SIGKILL)\""));
        losses.disconnected("1");
        String killed = "1 exited 137 by app: killed by signal 9 (SIGKILL) on h";
        Check.same(killed, REMOVED.poll());
        // Spark ignores it, unless the executor had registered after the first.
        Check.same(killed, REMOVED.poll());
        losses.registered("1", "h");
        Check.same(killed, REMOVED.poll());
        losses.placed("6");
        losses.placed("7");
        losses.reachable("6", false);
        losses.reachable("7", false);
        losses.reachable("7", true);
        losses.disconnected("6");
        timer.pass(4_999);
        Check.same(null, REMOVED.poll());
        timer.pass(1);
        String unreachable = String.valueOf(REMOVED.poll());
        Check.same("6 lost: its connection was closed, and its agent is unreachable", unreachable);
        losses.left("6");
        losses.left("7");
        losses.disconnected("2");
        timer.pass(5_000);
        String late = REMOVED.poll();
        Check.contains("2 lost by app: its connection was closed", String.valueOf(late));
        Check.same(null, REMOVED.poll());
        // 2 hasn't ended for Offermill; 3 has, and the report is missing; 4's beginning is missing.
        losses.compare(new HashSet<>(Arrays.asList("2", "4")));
        Check.contains("3 lost: it ended", String.valueOf(REMOVED.poll()));
        Check.same(2, losses.live());
        losses.compare(Collections.emptySet());
        Check.same(2, REMOVED.size());
        Check.same(0, losses.live());
        REMOVED.clear();
        losses.placed("5");
        losses.registered("5", "container-5");
        Check.same(null, REMOVED.poll());
        losses.ended(event("5", "agent_lost", "\"message\":\"agent lost\""));
        Check.same("5 lost with container-5: agent lost on h", REMOVED.poll());
    }

    private static void reasons() throws Exception {
        Check.same("exited -1: no java on h", reason("not_started", "\"message\":\"no java\""));
        Check.same("exited 137 by app: terminated with signal Killed (signal 9) on h",
            reason("signaled", "\"signal\":9,\"message\":\"terminated with signal Killed\""));
        Check.same("lost: agent lost on h", reason("agent_lost", "\"message\":\"agent lost\""));
        Check.same("lost: preempted on h", reason("preempted", "\"message\":null"));
        Check.same("lost: unknown on h", reason("unknown", "\"message\":\"\""));
        String memory = "\"message\":\"Memory limit exceeded\",\"state\":";
        Check.same("lost by app: Memory limit exceeded on h", reason("unknown", memory + "\"failed\""));
        Check.same("lost: Memory limit exceeded on h", reason("unknown", memory + "\"lost\""));
    }

    private static String reason(String cause, String rest) throws Exception {
        return text(Losses.reason(event("0", cause, rest), Option.empty()));
    }

    private static JsonNode event(String id, String cause, String rest) throws Exception {
        return new ObjectMapper().readTree("{\"executor\":\"" + id + "\",\"cause\":\"" + cause + "\",\"host\":\"h\","
            + rest + "}");
    }

    private static String text(ExecutorLossReason reason) {
        if (reason instanceof ExecutorExited) {
            ExecutorExited exited = (ExecutorExited) reason;
            String whose = exited.exitCausedByApp() ? " by app" : "";
            return "exited " + exited.exitCode() + whose + ": " + exited.message();
        }
        ExecutorProcessLost lost = (ExecutorProcessLost) reason;
        String whose = lost.causedByApp() ? " by app" : "";
        String host = lost.workerHost().isEmpty() ? "" : " with " + lost.workerHost().get();
        return "lost" + whose + host + ": " + lost.message();
    }
}
