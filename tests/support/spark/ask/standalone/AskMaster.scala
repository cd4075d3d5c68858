package org.apache.spark.deploy.master

import java.io.{File, PrintWriter}
import java.util.Date

import scala.collection.JavaConverters._
import scala.io.Source

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.SparkConf
import org.apache.spark.deploy.ApplicationDescription
import org.apache.spark.resource.ResourceProfile

/** Asks Spark's own standalone master where it would place the executors of one application. Arguments: a file with a
  * line for each question, of JSON: `spread`, the `cores` of an executor (or null), its `memory` in MiB, the `most` cores
  * of the application and its `limit` of executors (or null), and `workers`, each with free cores and memory, those with
  * the most cores first. And a file for the answers, a line of JSON each: the cores on each worker. Workers without room
  * for an executor are left out of the question to Spark, as its `startExecutorsOnWorkers` does. */
object AskMaster {
  private val json = new ObjectMapper()
  /** A master that was never started: the method asks nothing of it. */
  private val master = {
    val field = classOf[sun.misc.Unsafe].getDeclaredField("theUnsafe")
    field.setAccessible(true)
    field.get(null).asInstanceOf[sun.misc.Unsafe].allocateInstance(classOf[Master])
  }
  private val schedule = classOf[Master].getDeclaredMethods.find(_.getName == "scheduleExecutorsOnWorkers").get
  schedule.setAccessible(true)
  private val profile = ResourceProfile.getOrCreateDefaultProfile(new SparkConf(false))

  def main(arguments: Array[String]): Unit = {
    val Array(questions, answers) = arguments.map(new File(_))
    val source = Source.fromFile(questions, "UTF-8")
    val lines = try source.getLines().toList finally source.close()
    val writer = new PrintWriter(answers, "UTF-8")
    lines.foreach(line => writer.println(placed(json.readTree(line)).mkString("[", ",", "]")))
    writer.close()
    if (writer.checkError()) throw new java.io.IOException(s"$answers can't be written")
  }

  private def optional(node: JsonNode): Option[Int] = if (node.isNull) None else Some(node.asInt)

  private def placed(question: JsonNode): Seq[Int] = {
    val (cores, memory) = (optional(question.get("cores")), question.get("memory").asInt)
    val most = question.get("most").asInt
    val workers = question.get("workers").elements().asScala.zipWithIndex.map { case (worker, at) =>
      new WorkerInfo(s"w$at", "h", 1, worker.get(0).asInt, worker.get(1).asInt, null, "http://h:1", Map.empty)
    }.toSeq
    val usable = workers.filter(it => it.coresFree >= cores.getOrElse(1) && it.memoryFree >= memory)
    val description = new ApplicationDescription("n", Some(most), null, "", profile, None, None,
      optional(question.get("limit")), "u")
    val application = new ApplicationInfo(0, "a", description, new Date(), null, most)
    val wanted = ExecutorResourceDescription(cores, memory, Seq.empty)
    val spread = question.get("spread").asBoolean
    val assigned = schedule.invoke(master, application, Int.box(0), wanted, usable.toArray, Boolean.box(spread))
    val found = usable.map(_.id).zip(assigned.asInstanceOf[Array[Int]]).toMap
    workers.map(it => found.getOrElse(it.id, 0))
  }
}
