package org.apache.spark.scheduler.cluster.mesos

import java.lang.reflect.{Field, InvocationHandler, Method, Proxy}
import java.util.{Collection => JavaCollection}

import scala.collection.JavaConverters._
import scala.collection.mutable.{ArrayBuffer, HashMap}
import scala.concurrent.Await
import scala.concurrent.duration._

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.mesos.{Scheduler, SchedulerDriver}
import org.apache.mesos.Protos._
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.network.netty.SparkTransportConf
import org.apache.spark.network.shuffle.mesos.MesosExternalBlockStoreClient
import org.apache.spark.scheduler.{ExecutorLossReason, TaskSchedulerImpl}

/** What Spark's backend says, line by line. Its calls come from two threads while it stops. */
class Answers {
  val lines: ArrayBuffer[ObjectNode] = ArrayBuffer()
  @volatile var event: Int = -1

  def add(line: ObjectNode): Unit = synchronized { lines += line }

  def call(name: String)(fill: ObjectNode => Unit): Unit = {
    val line = Messages.emptyObject.put("ev", event).put("call", name)
    fill(line)
    add(line)
  }
}

/** A backend of Spark that scenarios are played to. */
trait AskedBackend extends Scheduler {
  /** The calls of which a backend of the other kind knows nothing do nothing by default. */
  def executorRegistered(cores: Int): Unit = ()
  def requestTotal(executors: Int, local: Map[String, Int]): Boolean = false
  def submit(tasks: Int): Unit = ()
  def passTime(milliseconds: Long): Unit = ()
  def kill(ids: Seq[String]): Boolean
  /** What an executor sends with the last update of a task. */
  def dataOf(state: TaskState): Array[Byte] = Array.empty
  def start(): Unit
  def stop(): Unit
  def isStopping: Boolean
  def hasTasks: Boolean
  def describeStart(line: ObjectNode): Unit
  def describeState(line: ObjectNode): Unit
}

/** Reads private fields of a class of Spark's. */
class PrivateFields[C](of: C, declaredBy: Class[_ >: C]) {
  def field(name: String): Field = {
    val found = declaredBy.getDeclaredFields.find(it => it.getName == name || it.getName.endsWith("$" + name)).get
    found.setAccessible(true)
    found
  }

  def value[T](name: String): T = field(name).get(of).asInstanceOf[T]
}

/** A driver that goes nowhere: it writes down what it is told. */
class NoteTaker(answers: Answers) extends InvocationHandler {
  val driver: SchedulerDriver = Proxy
    .newProxyInstance(getClass.getClassLoader, Array[Class[_]](classOf[SchedulerDriver]), this)
    .asInstanceOf[SchedulerDriver]

  override def invoke(self: Object, method: Method, given: Array[Object]): Object = {
    method.getName match {
      case "launchTasks" | "acceptOffers" => accept(given)
      case "declineOffer" => decline(given)
      case "killTask" => answers.call("kill")(_.put("task", given(0).asInstanceOf[TaskID].getValue))
      case "reviveOffers" => answers.call("revive")(_ => ())
      case "suppressOffers" => answers.call("suppress")(_ => ())
      case "stop" =>
        answers.call("driver_stop")(_.put("failover", given != null && given(0).asInstanceOf[Boolean]))
      case _ =>
    }
    if (method.getReturnType == classOf[Status]) Status.DRIVER_RUNNING else null
  }

  private def accept(given: Array[Object]): Unit = answers.call("accept") { line =>
    val offers = line.putArray("offers")
    given(0) match {
      case many: JavaCollection[_] => many.asScala.foreach(id => offers.add(id.asInstanceOf[OfferID].getValue))
      case one: OfferID => offers.add(one.getValue)
    }
    if (given.length > 2) line.put("refuse_seconds", given(2).asInstanceOf[Filters].getRefuseSeconds)
    val tasks = line.putArray("tasks")
    given(1).asInstanceOf[JavaCollection[TaskInfo]].asScala.foreach(task => tasks.add(Messages.task(task)))
  }

  private def decline(given: Array[Object]): Unit = answers.call("decline") { line =>
    line.put("offer", given(0).asInstanceOf[OfferID].getValue)
    val filters = if (given.length > 1) given(1).asInstanceOf[Filters] else null
    if (filters != null && filters.hasRefuseSeconds) line.put("refuse_seconds", filters.getRefuseSeconds)
    else line.putNull("refuse_seconds")
  }
}

/** Spark's own backend, its ways out replaced by the note taker's. */
class Asked(sc: SparkContext, answers: Answers, driver: SchedulerDriver)
    extends MesosCoarseGrainedSchedulerBackend(
      sc.taskScheduler.asInstanceOf[TaskSchedulerImpl], sc, "mesos://master:5050", sc.env.securityManager)
    with AskedBackend {
  private val fields = new PrivateFields[Asked](this, classOf[MesosCoarseGrainedSchedulerBackend])
  import fields.{field, value}

  override def createSchedulerDriver(
      masterUrl: String, scheduler: Scheduler, user: String, name: String, conf: SparkConf, web: Option[String],
      checkpoint: Option[Boolean], failoverTimeout: Option[Double], id: Option[String]): SchedulerDriver = driver

  override def startScheduler(driver: SchedulerDriver): Unit = ()

  override def getShuffleClient(): MesosExternalBlockStoreClient = {
    val transport = SparkTransportConf.fromSparkConf(sc.conf, "shuffle")
    new MesosExternalBlockStoreClient(transport, sc.env.securityManager, false, 5000L) {
      override def init(appId: String): Unit = answers.call("shuffle_init")(_.put("app_id", appId))
      override def registerDriverWithShuffleService(host: String, port: Int, timeout: Long, interval: Long): Unit =
        answers.call("shuffle_register")(_.put("host", host).put("port", port))
      override def close(): Unit = answers.call("shuffle_close")(_ => ())
    }
  }

  override def removeExecutor(id: String, why: ExecutorLossReason): Unit =
    answers.call("executor_removed")(_.put("executor", id).put("reason", why.message))

  override def executorRegistered(cores: Int): Unit = totalCoreCount.addAndGet(cores)

  override def requestTotal(executors: Int, local: Map[String, Int]): Boolean = {
    requestTotalExecutors(Map(0 -> executors), Map(0 -> local.values.sum), Map(0 -> local))
    true
  }

  def kill(ids: Seq[String]): Boolean = Await.result(doKillExecutors(ids), 5.seconds)

  override def passTime(milliseconds: Long): Unit = {
    val since = field("localityWaitStartTimeNs")
    since.setLong(this, since.getLong(this) - milliseconds * 1000000)
  }

  def isStopping: Boolean = value[Boolean]("stopCalled")

  private def agents: HashMap[String, Agent] = value("agents")

  def hasTasks: Boolean = agents.values.exists(_.taskIDs.nonEmpty)

  def describeStart(line: ObjectNode): Unit = {
    line.put("init", "ok").put("executor_memory", executorMemory(sc)).put("max_cores", value[Int]("maxCores"))
    line.put("reject_unmet_constraints_s", value[Long]("rejectOfferDurationForUnmetConstraints"))
    line.put("reject_max_cores_s", value[Long]("rejectOfferDurationForReachedMaxCores"))
    line.put("locality_wait_ms", value[Long]("localityWaitNs") / 1000000)
    val constraints = line.putObject("constraints")
    value[Map[String, Set[String]]]("agentOfferConstraints").toSeq.sortBy(_._1).foreach { case (name, values) =>
      val sorted = constraints.putArray(name)
      values.toSeq.sorted.foreach(value => sorted.add(value))
    }
  }

  def describeState(line: ObjectNode): Unit = {
    line.put("cores", value[Int]("totalCoresAcquired")).put("gpus", value[Int]("totalGpusAcquired"))
    line.put("executors", agents.values.map(_.taskIDs.size).sum)
    line.put("tasks_with_cores", value[HashMap[String, Int]]("coresByTaskId").size)
    line.put("next_task_id", value[Int]("nextMesosTaskId"))
    value[Option[Int]]("executorLimitOption") match {
      case Some(limit) => line.put("limit", limit)
      case None => line.putNull("limit")
    }
    line.put("launching", value[Boolean]("launchingExecutors")).put("sufficient", sufficientResourcesRegistered())
    line.put("stopped", isStopping)
    val lines = line.putObject("agents")
    agents.toSeq.sortBy(_._1).foreach { case (id, agent) =>
      val one = lines.putObject(id).put("failures", agent.taskFailures)
      val tasks = one.putArray("tasks")
      agent.taskIDs.toSeq.sortBy(_.toInt).foreach(task => tasks.add(task))
      if (agent.shuffleRegistered) one.put("shuffle", true)
    }
  }
}
