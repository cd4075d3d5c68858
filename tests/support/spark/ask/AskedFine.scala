package org.apache.spark.scheduler.cluster.mesos

import java.nio.ByteBuffer
import java.util.Properties
import java.util.concurrent.ExecutorService

import scala.collection.mutable.HashMap

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.mesos.{Scheduler, SchedulerDriver}
import org.apache.mesos.Protos.{ExecutorInfo, TaskState}
import org.apache.spark.{JobArtifactSet, SparkConf, SparkContext, SparkEnv, TaskContext}
import org.apache.spark.executor.TaskMetrics
import org.apache.spark.scheduler._
import org.apache.spark.util.ThreadUtils

/** A task without preferences, of which nothing is run. */
class WaitingTask(stage: Int, partition: Int, partitions: Int, metrics: Array[Byte]) extends Task[Int](
    stage, 0, partition, partitions, JobArtifactSet.defaultJobArtifactSet, new Properties, metrics) {
  override def runTask(context: TaskContext): Int = 0
}

/** Results are read at once, and not by other threads. */
class PromptResults(env: SparkEnv, scheduler: TaskSchedulerImpl) extends TaskResultGetter(env, scheduler) {
  override val getTaskResultExecutor: ExecutorService = ThreadUtils.sameThreadExecutorService()
}

/** Spark's own task scheduler, without its dice: tasks are placed in the order of the offers. */
class WaitingTasks(sc: SparkContext, answers: Answers)
    extends TaskSchedulerImpl(sc, sc.conf.getInt("spark.task.maxFailures", 4), isLocal = true) {
  private var stages = 0

  override def shuffleOffers(offers: IndexedSeq[WorkerOffer]): IndexedSeq[WorkerOffer] = offers

  override def resourceOffers(
      offers: IndexedSeq[WorkerOffer], isAllFreeResources: Boolean): Seq[Seq[TaskDescription]] = {
    answers.call("shown") { line =>
      val agents = line.putArray("agents")
      offers.foreach(offer => agents.addArray().add(offer.executorId).add(offer.cores))
    }
    super.resourceOffers(offers, isAllFreeResources)
  }

  def submit(count: Int): Unit = {
    val metrics = SparkEnv.get.closureSerializer.newInstance().serialize(TaskMetrics.registered).array()
    val tasks = Array.tabulate[Task[_]](count)(new WaitingTask(stages, _, count, metrics))
    val set = new TaskSet(tasks, stages, 0, stages, new Properties, 0, None)
    stages += 1
    submitTasks(set)
  }

  /** The tasks that may still be placed. */
  def waiting: Int = rootPool.getSortedTaskSetQueue.filterNot(_.isZombie).map { set =>
    set.tasks.indices.count(at => !set.successful(at) && set.copiesRunning(at) == 0)
  }.sum
}

object AskedFine {
  def apply(sc: SparkContext, answers: Answers, driver: SchedulerDriver): AskedFine = {
    val tasks = new WaitingTasks(sc, answers)
    tasks.setDAGScheduler(sc.dagScheduler)
    tasks.taskResultGetter.stop()
    tasks.taskResultGetter = new PromptResults(sc.env, tasks)
    val asked = new AskedFine(sc, tasks, driver)
    tasks.initialize(asked)
    asked
  }
}

/** Spark's own fine-grained backend, its way out replaced by the note taker's. */
class AskedFine(sc: SparkContext, tasks: WaitingTasks, driver: SchedulerDriver)
    extends MesosFineGrainedSchedulerBackend(tasks, sc, "mesos://master:5050") with AskedBackend {
  private val fields = new PrivateFields[AskedFine](this, classOf[MesosFineGrainedSchedulerBackend])
  private lazy val result: Array[Byte] = {
    val value: ByteBuffer = SparkEnv.get.serializer.newInstance().serialize(0)
    val result = new DirectTaskResult[Int](value, Nil, Array.empty[Long])
    SparkEnv.get.closureSerializer.newInstance().serialize(result).array()
  }

  override def createSchedulerDriver(
      masterUrl: String, scheduler: Scheduler, user: String, name: String, conf: SparkConf, web: Option[String],
      checkpoint: Option[Boolean], failoverTimeout: Option[Double], id: Option[String]): SchedulerDriver = driver

  override def startScheduler(driver: SchedulerDriver): Unit = ()

  override def submit(count: Int): Unit = tasks.submit(count)

  override def kill(ids: Seq[String]): Boolean = {
    ids.foreach(id => killTask(id.toLong, "", false, "asked"))
    true
  }

  override def dataOf(state: TaskState): Array[Byte] =
    if (state == TaskState.TASK_FINISHED) result else Array.empty

  override def isStopping: Boolean = stops > 0
  @volatile private var stops = 0
  override def stop(): Unit = {
    stops += 1
    super.stop()
  }

  override def hasTasks: Boolean = taskIdToAgentId.nonEmpty

  def describeStart(line: ObjectNode): Unit = {
    line.put("init", "ok").put("executor_memory", executorMemory(sc))
    line.put("reject_unmet_constraints_s", fields.value[Long]("rejectOfferDurationForUnmetConstraints"))
    line.put("mesos_executor_cores", mesosExecutorCores).put("task_cpus", tasks.CPUS_PER_TASK)
    val constraints = line.putObject("constraints")
    fields.value[Map[String, Set[String]]]("agentOfferConstraints").toSeq.sortBy(_._1).foreach { case (name, values) =>
      val sorted = constraints.putArray(name)
      values.toSeq.sorted.foreach(value => sorted.add(value))
    }
  }

  def describeState(line: ObjectNode): Unit = {
    val executors: HashMap[String, ExecutorInfo] = agentIdToExecutorInfo
    line.putNull("cores").put("executors", executors.size).put("waiting", tasks.waiting).putNull("limit")
    line.put("stopped", isStopping)
    val lines = line.putObject("agents")
    (executors.keySet ++ taskIdToAgentId.values).toSeq.sorted.foreach { id =>
      val one = lines.putObject(id).put("failures", 0)
      val here = one.putArray("tasks")
      taskIdToAgentId.filter(_._2 == id).keys.toSeq.sorted.foreach(task => here.add(task.toString))
      if (executors.contains(id)) one.put("executor", true)
    }
  }
}
