package org.apache.spark.scheduler.cluster.mesos

import java.io.{File, PrintWriter}
import java.util.{Collection => JavaCollection, List => JavaList}

import scala.collection.JavaConverters._
import scala.collection.mutable.ArrayBuffer
import scala.io.Source

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.mesos.SchedulerDriver
import org.apache.mesos.Protos._
import org.apache.mesos.Protos.Status.DRIVER_RUNNING
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.scheduler.ExecutorLossReason

/** Plays scenes to Spark's own backend for Mesos against the clock. Arguments: a folder of scenes, as `scene.rs` writes
  * them, a file for the answers, seconds a scene. */
object TimeSpark {
  def main(arguments: Array[String]): Unit = {
    val Array(scenes, answers, seconds) = arguments
    val writer = new PrintWriter(new File(answers), "UTF-8")
    for (file <- new File(scenes).listFiles().sortBy(_.getName) if file.getName.endsWith(".jsonl")) {
      val source = Source.fromFile(file, "UTF-8")
      val scene = try new Scene(source.getLines()) finally source.close()
      writer.println(scene.play((seconds.toDouble * 1e9).toLong))
      writer.flush()
      scene.end()
      println(s"${file.getName}: played")
    }
    writer.close()
    if (writer.checkError()) throw new java.io.IOException(s"$answers can't be written")
    System.exit(0)
  }

  private class Scene(lines: Iterator[String]) {
    private val head = Messages.read(lines.next())
    private val batch = head.get("batch").asInt
    private val offers = lines.map(line => Messages.offer(Messages.read(line))).toVector
    private val (met, stream) = {
      val (met, stream) = offers.splitAt(head.get("met").asInt)
      (batches(met), batches(stream))
    }
    private val driver = new Discarding
    private val context = start()
    private val backend = new Quiet(context, driver)
    backend.start()
    backend.registered(driver, FrameworkID.newBuilder().setValue("fw-1").build(),
      MasterInfo.newBuilder().setId("m").setIp(0).setPort(5050).build())

    private def batches(offers: Seq[Offer]): Vector[JavaList[Offer]] = offers.grouped(batch).map(_.asJava).toVector

    /** A context that binds and starts nothing for the settings' sake: they are added once it is there. */
    private def start(): SparkContext = {
      val conf = new SparkConf(false).setMaster("local[1]").setAppName("peer").set("spark.ui.enabled", "false")
      conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
      val context = new SparkContext(conf)
      context.setLogLevel("OFF")
      head.get("conf").fields().asScala.foreach(it => context.conf.set(it.getKey, it.getValue.asText))
      context.conf.set("spark.master", "mesos://master:5050")
      context
    }

    /** Half of the time is for the compiler of the JVM, and is not counted. */
    def play(nanoseconds: Long): ObjectNode = {
      val fail = head.get("fail").asBoolean
      for (_ <- 1 to head.get("rounds_before").asInt) {
        offer(met)
        if (fail) endAll(TaskState.TASK_FAILED)
      }
      // Those under a cap live on.
      if (head.get("conf").has("spark.cores.max")) driver.launched.clear() else endAll(TaskState.TASK_FINISHED)
      val (offerTimes, endTimes) = (ArrayBuffer[Double](), ArrayBuffer[Double]())
      val lap = head.get("lap").asInt
      var (position, launched) = (0, 0)
      val start = System.nanoTime()
      while (System.nanoTime() - start < nanoseconds || offerTimes.size < 3) {
        val next = Vector.tabulate(lap)(at => stream((position + at) % stream.size))
        position += lap
        val offerTime = offer(next)
        launched = driver.launched.size
        val endTime = endAll(TaskState.TASK_FINISHED)
        if (System.nanoTime() - start >= nanoseconds / 2) {
          offerTimes += offerTime.toDouble / next.map(_.size).sum
          if (launched > 0) endTimes += endTime.toDouble / launched
        }
      }
      val answer = Messages.emptyObject.put("name", head.get("name").asText).put("launched", launched)
      answer.put("offer", median(offerTimes))
      if (endTimes.nonEmpty) answer.put("end", median(endTimes))
      answer
    }

    private def offer(batches: Seq[JavaList[Offer]]): Long = {
      val start = System.nanoTime()
      batches.foreach(backend.resourceOffers(driver, _))
      System.nanoTime() - start
    }

    /** Ends the executors that were launched, one by one. */
    private def endAll(state: TaskState): Long = {
      val updates = driver.launched.map { task =>
        TaskStatus.newBuilder().setTaskId(task.getTaskId).setSlaveId(task.getSlaveId).setState(state).build()
      }
      driver.launched.clear()
      val start = System.nanoTime()
      updates.foreach(backend.statusUpdate(driver, _))
      System.nanoTime() - start
    }

    private def median(values: Seq[Double]): Double = values.sorted.apply(values.size / 2)

    def end(): Unit = {
      context.stop()
      System.getProperties.stringPropertyNames.asScala.filter(_.startsWith("spark.")).foreach(System.clearProperty)
    }
  }

  /** Spark's backend, which tells nobody about executors that are gone. */
  private class Quiet(context: SparkContext, driver: SchedulerDriver) extends Asked(context, new Answers, driver) {
    override def removeExecutor(id: String, why: ExecutorLossReason): Unit = ()
  }

  /** A driver that goes nowhere. It remembers what was launched. */
  private class Discarding extends SchedulerDriver {
    val launched: ArrayBuffer[TaskInfo] = ArrayBuffer()

    private def launch(tasks: JavaCollection[TaskInfo]): Status = {
      launched ++= tasks.asScala
      DRIVER_RUNNING
    }

    override def launchTasks(offers: JavaCollection[OfferID], tasks: JavaCollection[TaskInfo], filters: Filters): Status =
      launch(tasks)
    override def launchTasks(offers: JavaCollection[OfferID], tasks: JavaCollection[TaskInfo]): Status = launch(tasks)
    override def launchTasks(offer: OfferID, tasks: JavaCollection[TaskInfo], filters: Filters): Status = launch(tasks)
    override def launchTasks(offer: OfferID, tasks: JavaCollection[TaskInfo]): Status = launch(tasks)
    override def acceptOffers(
        offers: JavaCollection[OfferID], operations: JavaCollection[Offer.Operation], filters: Filters): Status = {
      operations.asScala.foreach(operation => launch(operation.getLaunch.getTaskInfosList))
      DRIVER_RUNNING
    }
    override def declineOffer(offer: OfferID, filters: Filters): Status = DRIVER_RUNNING
    override def declineOffer(offer: OfferID): Status = DRIVER_RUNNING
    override def start(): Status = DRIVER_RUNNING
    override def stop(failover: Boolean): Status = DRIVER_RUNNING
    override def stop(): Status = DRIVER_RUNNING
    override def abort(): Status = DRIVER_RUNNING
    override def join(): Status = DRIVER_RUNNING
    override def run(): Status = DRIVER_RUNNING
    override def requestResources(requests: JavaCollection[Request]): Status = DRIVER_RUNNING
    override def killTask(task: TaskID): Status = DRIVER_RUNNING
    override def reviveOffers(): Status = DRIVER_RUNNING
    override def suppressOffers(): Status = DRIVER_RUNNING
    override def acknowledgeStatusUpdate(status: TaskStatus): Status = DRIVER_RUNNING
    override def sendFrameworkMessage(executor: ExecutorID, agent: SlaveID, data: Array[Byte]): Status = DRIVER_RUNNING
    override def reconcileTasks(statuses: JavaCollection[TaskStatus]): Status = DRIVER_RUNNING
  }
}
