package org.apache.spark.deploy.k8s.features

import java.io.{File, PrintWriter}

import scala.collection.JavaConverters._
import scala.io.Source

import com.fasterxml.jackson.databind.ObjectMapper
import io.fabric8.kubernetes.client.utils.Serialization
import org.apache.spark.{SecurityManager, SparkConf}
import org.apache.spark.deploy.k8s.{KubernetesExecutorConf, SparkPod}
import org.apache.spark.resource.ResourceProfile

/** Asks Spark's own step for the pods of executors. Arguments: a file with a line for each executor, of JSON with its
  * settings (conf), id and app; and a file for the pods, a line of JSON each. */
object AskPod {
  private val json = new ObjectMapper()

  def main(arguments: Array[String]): Unit = {
    val Array(questions, answers) = arguments.map(new File(_))
    val source = Source.fromFile(questions, "UTF-8")
    val lines = try source.getLines().toList finally source.close()
    val writer = new PrintWriter(answers, "UTF-8")
    lines.foreach(line => writer.println(pod(line)))
    writer.close()
    if (writer.checkError()) throw new java.io.IOException(s"$answers can't be written")
  }

  private def pod(line: String): String = {
    val question = json.readTree(line)
    val conf = new SparkConf(false)
    question.get("conf").fields().asScala.foreach(entry => conf.set(entry.getKey, entry.getValue.asText))
    ResourceProfile.clearDefaultProfile()
    val profile = ResourceProfile.getOrCreateDefaultProfile(conf)
    val executor = new KubernetesExecutorConf(conf, question.get("app").asText, question.get("id").asText, None)
    val step = new BasicExecutorFeatureStep(executor, new SecurityManager(conf), profile)
    val made = step.configurePod(SparkPod.initialPod())
    val answer = json.createObjectNode()
    answer.set("pod", json.readTree(Serialization.asJson(made.pod)))
    answer.set("container", json.readTree(Serialization.asJson(made.container)))
    answer.toString
  }
}
