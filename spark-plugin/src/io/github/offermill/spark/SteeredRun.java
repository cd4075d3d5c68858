package io.github.offermill.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.IntSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A child process <code>offermill run --steered</code>: commands go to its standard input, events come from its
 * standard output, and each has a thread of its own, so that no caller waits for a child that hangs.
 */
final class SteeredRun {
    /** The protocol that is spoken here. */
    static final int PROTOCOL = 1;
    private static final Logger LOG = LoggerFactory.getLogger(SteeredRun.class);
    private static final int LAST_WORDS_MAX = 10;
    private static final String CLOSE = "";

    private final Process process;
    private final Consumer<JsonNode> listener;
    private final LinkedBlockingQueue<String> commands = new LinkedBlockingQueue<>();
    /** Commands without an answer, by their ids. */
    private final Map<String, CompletableFuture<JsonNode>> unanswered = new ConcurrentHashMap<>();
    private final CompletableFuture<JsonNode> started = new CompletableFuture<>();
    private final CompletableFuture<String> registered = new CompletableFuture<>();
    private final CompletableFuture<String> ended = new CompletableFuture<>();
    private final Deque<String> lastWords = new ArrayDeque<>();
    /** Whether what it says is logged at once. Before it has started, it says why it can't, which the failure tells. */
    private boolean isLogged = false;
    private final Thread messages;
    private long numbered = 0;
    /** Whether no answer comes any more. */
    private volatile boolean isOver = false;
    /** Why the run ended, as it says itself. Only the thread of the events uses it. */
    private String ending = null;

    /**
     * Starts the program.
     *
     * @param settings what it reads before commands, with its last line
     * @param listener gets each event, in their order, on one thread
     * @throws IOException if it can't be started
     */
    SteeredRun(List<String> command, String settings, Consumer<JsonNode> listener) throws IOException {
        this.listener = listener;
        this.commands.add(settings);
        this.process = new ProcessBuilder(command).start();
        this.messages = daemon("offermill-messages", this::readMessages);
        daemon("offermill-commands", this::writeCommands);
        daemon("offermill-events", this::readEvents);
    }

    private static Thread daemon(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** The first event; fails if there is another one, or none. */
    CompletableFuture<JsonNode> started() {
        return started;
    }

    /** The framework's id; fails if the process ends before. */
    CompletableFuture<String> registered() {
        return registered;
    }

    /** Why the process ended; completed when it has. */
    CompletableFuture<String> ended() {
        return ended;
    }

    /** Sends a command. Its answer fails if the process ends before; it may never come if the process hangs. */
    CompletableFuture<JsonNode> send(String command) {
        CompletableFuture<JsonNode> answer = new CompletableFuture<>();
        synchronized (this) {
            numbered += 1;
            String id = Long.toString(numbered);
            unanswered.put(id, answer);
            commands.add("id=" + id + " " + command + "\n");
        }
        if (isOver) {
            failUnanswered();
        }
        return answer;
    }

    /** Closes standard input after the commands before: the run then ends within seconds. */
    void close() {
        commands.add(CLOSE);
    }

    /** Waits for the end. Returns whether it has come. */
    boolean awaitEnd(long millis) {
        try {
            return process.waitFor(millis, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /**
     * Ends the run in good order, and kills it if it doesn't end. An interrupt during it makes the waits shorter; one
     * before it changes nothing. The thread is interrupted afterwards in both cases.
     *
     * @param live how many executors live
     * @param leaveMillis how long they may take to end by themselves, before they are asked to
     * @param endMillis how long the run may take to end them
     * @param closeMillis how long it may take after its input has ended
     */
    void stop(IntSupplier live, long leaveMillis, long endMillis, long closeMillis) {
        boolean wasInterrupted = Thread.interrupted();
        try {
            long leave = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(leaveMillis);
            while (live.getAsInt() > 0 && System.nanoTime() < leave && !Thread.currentThread().isInterrupted()
                && !awaitEnd(20)) {
                // They end.
            }
            send("stop");
            if (awaitEnd(endMillis)) {
                return;
            }
            close();
            wasInterrupted |= Thread.interrupted();
            if (!awaitEnd(closeMillis)) {
                LOG.warn("Offermill didn't end in time and was killed");
                kill();
            }
        } finally {
            close();
            if (wasInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Ends the process at once, if it hasn't ended. Executors on this machine have watchdogs, which end them.
     */
    void kill() {
        process.destroyForcibly();
    }

    private void writeCommands() {
        try (OutputStream stdin = process.getOutputStream()) {
            while (true) {
                String command = commands.take();
                if (command.equals(CLOSE)) {
                    return;
                }
                stdin.write(command.getBytes(StandardCharsets.UTF_8));
                stdin.flush();
            }
        } catch (IOException gone) {
            // The process has ended, which the thread of the events reports.
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void readMessages() {
        try (BufferedReader stderr = reader(process.getErrorStream())) {
            for (String line = stderr.readLine(); line != null; line = stderr.readLine()) {
                synchronized (lastWords) {
                    lastWords.addLast(line);
                    if (lastWords.size() > LAST_WORDS_MAX) {
                        lastWords.removeFirst();
                    }
                    if (isLogged) {
                        LOG.warn("{}", line);
                    }
                }
            }
        } catch (IOException gone) {
            // As at its end.
        }
    }

    private static BufferedReader reader(InputStream stream) {
        return new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8));
    }

    private void readEvents() {
        String wrong = null;
        try (BufferedReader stdout = reader(process.getInputStream())) {
            ObjectMapper json = new ObjectMapper();
            for (String line = stdout.readLine(); line != null; line = stdout.readLine()) {
                JsonNode event = json.readTree(line);
                wrong = handle(event, line);
                if (wrong != null) {
                    break;
                }
            }
        } catch (JsonProcessingException odd) {
            wrong = "it wrote what isn't JSON: " + odd.getOriginalMessage();
        } catch (IOException gone) {
            // As at its end.
        } catch (Throwable failure) {
            wrong = "its events could not be read: " + failure;
            throw failure;
        } finally {
            end(wrong);
        }
    }

    /** Returns what is wrong with an event, or null. */
    private String handle(JsonNode event, String line) {
        String name = event.path("event").asText();
        if (!started.isDone()) {
            int protocol = event.path("protocol").asInt(0);
            if (!name.equals("started")) {
                return "its first line isn't that of `offermill run --steered`: " + beginning(line);
            }
            if (protocol != PROTOCOL) {
                return "it speaks protocol " + protocol + ", but this plug-in " + PROTOCOL
                    + ": the program and the jar are of different releases";
            }
            started.complete(event);
            synchronized (lastWords) {
                isLogged = true;
                lastWords.forEach(remark -> LOG.warn("{}", remark));
            }
        }
        if (name.equals("registered")) {
            registered.complete(event.path("framework_id").asText());
        } else if (name.equals("summary")) {
            ending = event.path("ending").asText();
        } else if (name.equals("answer")) {
            CompletableFuture<JsonNode> answer = unanswered.remove(event.path("id").asText());
            if (answer != null) {
                answer.complete(event);
            }
        }
        try {
            listener.accept(event);
        } catch (LinkageError stranger) {
            return "the plug-in isn't for this release of Spark: " + stranger;
        } catch (Throwable failure) {
            // The next events are needed all the same. Scala's methods throw what they don't declare.
            LOG.error("an event of Offermill could not be handled: {}", beginning(line), failure);
        }
        return null;
    }

    private static String beginning(String line) {
        return line.length() > 200 ? line.substring(0, 200) + "…" : line;
    }

    /** Standard output has ended, or is of no use. */
    private void end(String wrong) {
        close();
        if (wrong != null) {
            kill();
        } else if (!awaitEnd(TimeUnit.SECONDS.toMillis(5))) {
            wrong = "it closed its output";
            kill();
        }
        awaitEnd(TimeUnit.SECONDS.toMillis(5));
        try {
            messages.join(TimeUnit.SECONDS.toMillis(1));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        String why = wrong != null ? wrong : howItEnded();
        IllegalStateException failure = new IllegalStateException(why);
        started.completeExceptionally(failure);
        registered.completeExceptionally(failure);
        // Before others learn of the end: they may want what somebody holds who waits for an answer.
        isOver = true;
        failUnanswered();
        ended.complete(why);
    }

    private void failUnanswered() {
        IllegalStateException failure = new IllegalStateException("offermill has ended");
        for (String id : unanswered.keySet()) {
            CompletableFuture<JsonNode> answer = unanswered.remove(id);
            if (answer != null) {
                answer.completeExceptionally(failure);
            }
        }
    }

    private String howItEnded() {
        StringBuilder why = new StringBuilder("it ended");
        if (!process.isAlive()) {
            int code = process.exitValue();
            // How Java and shells tell signals.
            why.append(code > 128 && ending == null ? " by signal " + (code - 128) : " with exit code " + code);
        }
        if (ending != null) {
            why.append(": ").append(ending);
        }
        synchronized (lastWords) {
            for (String line : lastWords) {
                why.append("\n  ").append(line);
            }
        }
        return why.toString();
    }
}
