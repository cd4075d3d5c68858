package io.github.offermill.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.NullNode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Goal: a child's silence is reported once, and so is its end; a child that is silent isn't asked more and more.
 * Method: answers that come at once, late, and never.
 */
final class AnswerWatchTest {
    private AnswerWatchTest() {}

    public static void main(String[] arguments) {
        List<CompletableFuture<JsonNode>> asked = new ArrayList<>();
        List<Boolean> changes = new ArrayList<>();
        ManualTimer timer = new ManualTimer();
        new AnswerWatch(() -> {
            CompletableFuture<JsonNode> answer = new CompletableFuture<>();
            asked.add(answer);
            return answer;
        }, changes::add, 30, 500, timer);
        for (int time = 1; time <= 3; time++) {
            timer.pass(29);
            Check.same(time - 1, asked.size());
            timer.pass(1);
            Check.same(time, asked.size());
            asked.get(time - 1).complete(NullNode.getInstance());
        }
        timer.pass(30 + 499);
        Check.same("[]", changes.toString());
        timer.pass(1);
        Check.same("[true]", changes.toString());
        timer.pass(10_000);
        Check.same("[true]", changes.toString());
        Check.same(4, asked.size());
        asked.get(3).complete(NullNode.getInstance());
        Check.same("[true, false]", changes.toString());
        timer.pass(30);
        Check.same(5, asked.size());
        timer.pass(500);
        Check.same("[true, false, true]", changes.toString());
        timer.shutdownNow();
        // The end of an application, whose child may still answer.
        asked.get(4).complete(NullNode.getInstance());
        timer.pass(10_000);
        Check.same(5, asked.size());
    }
}
