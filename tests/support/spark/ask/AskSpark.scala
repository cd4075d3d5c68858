package org.apache.spark.scheduler.cluster.mesos

import java.io.{File, PrintWriter}

import scala.collection.JavaConverters._
import scala.collection.mutable.{ArrayBuffer, TreeMap}
import scala.io.Source

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.mesos.protobuf.ByteString
import org.apache.mesos.Protos.{ExecutorID, FrameworkID, MasterInfo, OfferID, TaskState, TaskStatus}
import org.apache.spark.{SparkConf, SparkContext}

/** Plays scenarios to Spark's own backends for Mesos: with `spark.mesos.coarse` false to the fine-grained one.
  * Arguments: a folder of drafts, a folder for scenarios, one for answers. A draft is a scenario in which a task may be
  * "?N": any that lives, the N-th of them in a circle. What it became is written as the scenario; an event for which
  * nothing lives is left out. */
object AskSpark {
  /** Given to the context only once it has started, so that it binds, checks and starts nothing for their sake. */
  private val late = Set("spark.driver.host", "spark.driver.port", "spark.blockManager.port", "spark.cores.max",
    "spark.executor.cores", "spark.dynamicAllocation.enabled", "spark.shuffle.service.enabled")
  /** To these a context adds its own. */
  private val added = Seq("spark.executor.extraJavaOptions", "spark.driver.extraJavaOptions")
  private val terminal = Set("TASK_FINISHED", "TASK_FAILED", "TASK_KILLED", "TASK_LOST", "TASK_ERROR", "TASK_DROPPED",
    "TASK_GONE", "TASK_GONE_BY_OPERATOR", "TASK_UNKNOWN", "TASK_UNREACHABLE")

  def main(arguments: Array[String]): Unit = {
    val Array(drafts, scenarios, answers) = arguments.map(new File(_))
    Seq(scenarios, answers).foreach(_.mkdirs())
    for (draft <- drafts.listFiles().sortBy(_.getName) if draft.getName.endsWith(".jsonl")) {
      val source = Source.fromFile(draft, "UTF-8")
      val lines = try source.getLines().toList finally source.close()
      val play = new Play(Messages.read(lines.head))
      play.all(lines.tail)
      write(new File(scenarios, draft.getName), lines.head +: play.kept)
      write(new File(answers, draft.getName), play.init.toString +: play.answers.lines.map(_.toString))
      play.end()
    }
    System.exit(0)
  }

  private def write(file: File, lines: Seq[String]): Unit = {
    val writer = new PrintWriter(file, "UTF-8")
    lines.foreach(writer.println(_))
    writer.close()
    if (writer.checkError()) throw new java.io.IOException(s"$file can't be written")
  }

  private def sentence(error: Throwable) = error.getClass.getSimpleName + ": " + error.getMessage

  private class Play(head: JsonNode) {
    val answers = new Answers
    val init: ObjectNode = Messages.emptyObject
    val kept: ArrayBuffer[String] = ArrayBuffer()
    private val driver = new NoteTaker(answers).driver
    private val live = TreeMap[Int, String]()
    private var context: Option[SparkContext] = None
    private var stopper: Option[Thread] = None
    private val backend: Option[AskedBackend] = try Some(start()) catch {
      case error: Exception =>
        init.put("init", "error").put("error", sentence(error))
        Option(error.getCause).foreach(cause => init.put("cause", sentence(cause)))
        None
    }

    private def start(): AskedBackend = {
      val given = head.get("conf").fields().asScala.map(entry => entry.getKey -> entry.getValue.asText).toMap
      // A task of several cores must fit into a local executor, or the context doesn't start.
      val conf = new SparkConf(false).setMaster("local[8]").setAppName("asked")
      given.filterNot(it => late(it._1)).foreach { case (key, value) => conf.set(key, value) }
      conf.set("spark.ui.enabled", "false")
      conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
      val sc = new SparkContext(conf)
      context = Some(sc)
      added.foreach(key => sc.conf.remove(key))
      given.filter(it => late(it._1) || added.contains(it._1)).foreach { case (key, value) => sc.conf.set(key, value) }
      sc.conf.set("spark.master", "mesos://master:5050")
      val isCoarse = sc.conf.getBoolean("spark.mesos.coarse", true)
      val asked = if (isCoarse) new Asked(sc, answers, driver) else AskedFine(sc, answers, driver)
      asked.start()
      asked.describeStart(init)
      asked
    }

    def all(drafts: Seq[String]): Unit =
      for (asked <- backend; draft <- drafts; event <- resolve(Messages.read(draft))) one(asked, event)

    /** The event with tasks that live, if there are any. */
    private def resolve(event: JsonNode): Option[JsonNode] = {
      def pick(text: String) = live.toSeq(text.drop(1).toInt % live.size)
      val status = event.path("status").path("task").asText
      val kills = Messages.each(event.get("kill")).map(_.asText)
      if ((status +: kills).exists(_.startsWith("?")) && live.isEmpty) return None
      if (status.startsWith("?")) {
        val (task, agent) = pick(status)
        event.get("status").asInstanceOf[ObjectNode].put("task", task.toString).put("agent", agent)
      }
      for ((kill, at) <- kills.zipWithIndex if kill.startsWith("?")) {
        event.get("kill").asInstanceOf[ArrayNode].remove(at)
        event.get("kill").asInstanceOf[ArrayNode].insert(at, pick(kill)._1.toString)
      }
      Some(event)
    }

    private def one(asked: AskedBackend, event: JsonNode): Unit = {
      answers.event = kept.size
      kept += event.toString
      val before = answers.lines.size
      val closing = Messages.emptyObject.put("ev", answers.event)
      try tell(asked, event, closing) catch {
        case error: Exception => closing.put("error", sentence(error))
        case error: MatchError => closing.put("error", sentence(error))
      }
      // A stop that waits for the last executor goes on within this event.
      if (event.has("status") && !asked.hasTasks) stopper.foreach(_.join())
      asked.describeState(closing.putObject("after"))
      answers.add(closing)
      for (line <- answers.lines.drop(before); task <- Messages.each(line.get("tasks"))) {
        live(task.get("id").asText.toInt) = task.get("agent").asText
      }
      val status = event.path("status")
      if (terminal(status.path("state").asText)) live -= status.get("task").asText.toInt
    }

    private def tell(asked: AskedBackend, event: JsonNode, closing: ObjectNode): Unit = {
      val kind = event.fieldNames().next()
      val value = event.get(kind)
      val master = MasterInfo.newBuilder().setId("m").setIp(0).setPort(5050).build()
      kind match {
        case "registered" =>
          val id = FrameworkID.newBuilder().setValue(value.get("framework_id").asText).build()
          asked.registered(driver, id, master)
        case "offers" => asked.resourceOffers(driver, Messages.each(value).map(Messages.offer).asJava)
        case "status" =>
          val status = TaskStatus.newBuilder().setTaskId(Messages.taskId(value.get("task").asText))
            .setSlaveId(Messages.agentId(value.get("agent").asText))
            .setState(TaskState.valueOf(value.get("state").asText))
          status.setData(ByteString.copyFrom(asked.dataOf(status.getState)))
          asked.statusUpdate(driver, status.build())
        case "request_total" =>
          // As if it had succeeded, if it throws.
          closing.put("result", true)
          val local = if (event.has("local")) event.get("local").fields().asScala.toSeq else Nil
          val hosts = local.map(entry => entry.getKey -> entry.getValue.asInt).toMap
          closing.put("result", asked.requestTotal(value.asInt, hosts))
        case "tasks" => asked.submit(value.asInt)
        case "kill" => closing.put("result", asked.kill(Messages.each(value).map(_.asText)))
        case "slave_lost" => asked.slaveLost(driver, Messages.agentId(value.asText))
        case "executor_lost" =>
          val id = ExecutorID.newBuilder().setValue(value.path("executor").asText).build()
          asked.executorLost(driver, id, Messages.agentId(value.path("agent").asText), 1)
        case "rescinded" => asked.offerRescinded(driver, OfferID.newBuilder().setValue(value.asText).build())
        case "disconnected" => asked.disconnected(driver)
        case "reregistered" => asked.reregistered(driver, master)
        case "error" => asked.error(driver, value.asText)
        case "advance_ms" => asked.passTime(value.asLong)
        case "executor_registered" => asked.executorRegistered(value.get("cores").asInt)
        case "stop" => stop(asked, closing)
        case "await_stop" => stopper.foreach(_.join())
      }
    }

    /** Stops on a thread of its own, and returns when that waits or is done. */
    private def stop(asked: AskedBackend, closing: ObjectNode): Unit = stopper match {
      case Some(_) =>
        closing.put("result", "again")
        asked.stop()
      case None =>
        val thread = new Thread(() => asked.stop())
        stopper = Some(thread)
        thread.start()
        def waits = asked.isStopping && thread.getState == Thread.State.TIMED_WAITING
        while (thread.isAlive && !waits) Thread.sleep(1)
        if (!asked.hasTasks) thread.join()
    }

    def end(): Unit = {
      stopper.foreach(_.join())
      context.foreach(_.stop())
      System.getProperties.stringPropertyNames.asScala.filter(_.startsWith("spark.")).foreach(System.clearProperty)
    }
  }
}
