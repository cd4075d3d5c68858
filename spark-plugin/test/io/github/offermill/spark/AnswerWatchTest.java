package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.NullNode;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Goal: a child's silence is reported once, and so is its end; a child that is silent isn't asked more and more.
 * Method: answers that come at once, late, and never.
 */
final class AnswerWatchTest {
    private AnswerWatchTest() {}

    public static void main(String[] arguments) throws Exception {
        BlockingQueue<CompletableFuture<JsonNode>> asked = new LinkedBlockingQueue<>();
        BlockingQueue<Boolean> changes = new LinkedBlockingQueue<>();
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
        new AnswerWatch(() -> {
            CompletableFuture<JsonNode> answer = new CompletableFuture<>();
            asked.add(answer);
            return answer;
        }, changes::add, 10, 500, timer);
        for (int time = 0; time < 3; time++) {
            next(asked).complete(NullNode.getInstance());
        }
        CompletableFuture<JsonNode> late = next(asked);
        Check.same(null, changes.peek());
        Check.same(true, next(changes));
        Check.same(null, asked.peek());
        late.complete(NullNode.getInstance());
        Check.same(false, next(changes));
        next(asked);
        Check.same(true, next(changes));
        timer.shutdownNow();
        Check.same(null, changes.peek());
    }

    private static <T> T next(BlockingQueue<T> queue) throws InterruptedException {
        T one = queue.poll(10, TimeUnit.SECONDS);
        Check.same(true, one != null);
        return one;
    }
}
