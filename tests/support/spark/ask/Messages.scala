package org.apache.spark.scheduler.cluster.mesos

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{ArrayNode, JsonNodeFactory, ObjectNode}
import org.apache.mesos.Protos._

/** Scenarios' offers as Mesos' messages, and what Spark launches as answers. The format is in ../traces/README.md. */
object Messages {
  private val nodes = JsonNodeFactory.instance
  private val mapper = new ObjectMapper()

  def read(line: String): JsonNode = mapper.readTree(line)
  def emptyObject: ObjectNode = nodes.objectNode()

  /** The elements of an array, or none if it isn't there. */
  def each(node: JsonNode): Seq[JsonNode] = if (node == null) Nil else node.asScala.toList

  def agentId(text: String): SlaveID = SlaveID.newBuilder().setValue(text).build()
  def taskId(text: String): TaskID = TaskID.newBuilder().setValue(text).build()

  def offer(line: JsonNode): Offer = {
    val offer = Offer.newBuilder()
      .setId(OfferID.newBuilder().setValue(line.get("id").asText))
      .setFrameworkId(FrameworkID.newBuilder().setValue("any"))
      .setSlaveId(agentId(line.get("agent").asText))
      .setHostname(line.get("host").asText)
    each(line.get("resources")).foreach(resource => offer.addResources(toResource(resource)))
    each(line.get("attributes")).foreach(attribute => offer.addAttributes(toAttribute(attribute)))
    offer.build()
  }

  private def toResource(line: JsonNode): Resource = {
    val resource = Resource.newBuilder().setName(line.get("name").asText)
    resource.setRole(if (line.has("role")) line.get("role").asText else "*")
    if (line.has("reservation")) {
      val from = line.get("reservation")
      val reservation = Resource.ReservationInfo.newBuilder()
      if (from.has("principal")) reservation.setPrincipal(from.get("principal").asText)
      if (from.has("role")) reservation.setRole(from.get("role").asText)
      resource.setReservation(reservation)
    }
    if (line.has("scalar")) resource.setType(Value.Type.SCALAR).setScalar(scalar(line))
    if (line.has("ranges")) resource.setType(Value.Type.RANGES).setRanges(ranges(line))
    if (line.has("set")) resource.setType(Value.Type.SET).setSet(set(line))
    resource.build()
  }

  private def toAttribute(line: JsonNode): Attribute = {
    val attribute = Attribute.newBuilder().setName(line.get("name").asText)
    if (line.has("text")) {
      attribute.setType(Value.Type.TEXT).setText(Value.Text.newBuilder().setValue(line.get("text").asText))
    }
    if (line.has("scalar")) attribute.setType(Value.Type.SCALAR).setScalar(scalar(line))
    if (line.has("ranges")) attribute.setType(Value.Type.RANGES).setRanges(ranges(line))
    if (line.has("set")) attribute.setType(Value.Type.SET).setSet(set(line))
    attribute.build()
  }

  private def scalar(line: JsonNode) = Value.Scalar.newBuilder().setValue(line.get("scalar").asDouble)

  private def ranges(line: JsonNode) = {
    val ranges = Value.Ranges.newBuilder()
    each(line.get("ranges")).foreach { range =>
      ranges.addRange(Value.Range.newBuilder().setBegin(range.get(0).asLong).setEnd(range.get(1).asLong))
    }
    ranges
  }

  private def set(line: JsonNode) = {
    val set = Value.Set.newBuilder()
    each(line.get("set")).foreach(item => set.addItem(item.asText))
    set
  }

  def task(task: TaskInfo): ObjectNode = {
    val line = emptyObject
    line.put("id", task.getTaskId.getValue)
    line.put("name", task.getName)
    line.put("agent", task.getSlaveId.getValue)
    putResources(line, task.getResourcesList.asScala)
    if (task.hasExecutor) {
      line.set[JsonNode]("executor", fromExecutor(task.getExecutor, task.getSlaveId))
    } else {
      putCommand(line, task.getCommand)
    }
    if (task.getLabels.getLabelsCount > 0) line.set[JsonNode]("labels", fromLabels(task.getLabels))
    if (task.hasContainer) line.set[JsonNode]("container", fromContainer(task.getContainer))
    line
  }

  private def fromExecutor(executor: ExecutorInfo, agent: SlaveID): ObjectNode = {
    val line = emptyObject.put("id", executor.getExecutorId.getValue).put("agent", agent.getValue)
    putResources(line, executor.getResourcesList.asScala)
    putCommand(line, executor.getCommand)
    if (executor.getLabels.getLabelsCount > 0) line.set[JsonNode]("labels", fromLabels(executor.getLabels))
    if (executor.hasContainer) line.set[JsonNode]("container", fromContainer(executor.getContainer))
    line
  }

  private def putResources(line: ObjectNode, pieces: Seq[Resource]): Unit = {
    for (name <- Seq("cpus", "mem", "gpus")) {
      line.put(name, pieces.filter(_.getName == name).map(_.getScalar.getValue).sum)
    }
    val resources = line.putArray("resources")
    pieces.foreach(piece => resources.add(fromResource(piece)))
  }

  private def putCommand(line: ObjectNode, command: CommandInfo): Unit = {
    line.put("command", command.getValue)
    if (command.getUrisCount > 0) {
      val uris = line.putArray("uris")
      command.getUrisList.asScala.foreach(uri => uris.addObject().put("value", uri.getValue).put("cache", uri.getCache))
    }
    val variables = line.putObject("env")
    command.getEnvironment.getVariablesList.asScala.sortBy(_.getName).foreach { variable =>
      variables.put(variable.getName, variable.getValue)
    }
  }

  private def fromResource(resource: Resource): ObjectNode = {
    val line = emptyObject.put("name", resource.getName).put("role", resource.getRole)
    if (resource.hasReservation) {
      val reservation = line.putObject("reservation")
      if (resource.getReservation.hasPrincipal) reservation.put("principal", resource.getReservation.getPrincipal)
      if (resource.getReservation.hasRole) reservation.put("role", resource.getReservation.getRole)
    }
    if (resource.hasScalar) line.put("scalar", resource.getScalar.getValue)
    if (resource.hasRanges) {
      val ranges = line.putArray("ranges")
      resource.getRanges.getRangeList.asScala.foreach(range => ranges.addArray().add(range.getBegin).add(range.getEnd))
    }
    line
  }

  private def fromLabels(labels: Labels): ArrayNode = {
    val pairs = nodes.arrayNode()
    labels.getLabelsList.asScala.foreach(label => pairs.addArray().add(label.getKey).add(label.getValue))
    pairs
  }

  private def fromContainer(container: ContainerInfo): ObjectNode = {
    val line = emptyObject.put("type", container.getType.name)
    if (container.hasDocker) {
      val docker = container.getDocker
      line.put("image", docker.getImage)
      if (docker.getForcePullImage) line.put("force_pull", true)
      if (docker.getPortMappingsCount > 0) {
        val ports = line.putArray("port_mappings")
        docker.getPortMappingsList.asScala.foreach { port =>
          ports.addObject().put("host", port.getHostPort).put("container", port.getContainerPort)
            .put("protocol", port.getProtocol)
        }
      }
      if (docker.getParametersCount > 0) {
        val parameters = line.putArray("parameters")
        docker.getParametersList.asScala.foreach(it => parameters.addArray().add(it.getKey).add(it.getValue))
      }
    }
    if (container.getMesos.hasImage) {
      line.put("image", container.getMesos.getImage.getDocker.getName)
      if (!container.getMesos.getImage.getCached) line.put("force_pull", true)
    }
    if (container.getVolumesCount > 0) {
      val volumes = line.putArray("volumes")
      container.getVolumesList.asScala.foreach { volume =>
        val one = volumes.addObject()
        one.put("host", if (volume.hasHostPath) volume.getHostPath else null)
        one.put("container", volume.getContainerPath).put("read_only", volume.getMode == Volume.Mode.RO)
      }
    }
    if (container.getNetworkInfosCount > 0) {
      val networks = line.putArray("networks")
      container.getNetworkInfosList.asScala.foreach { network =>
        val one = networks.addObject().put("name", network.getName)
        one.set[JsonNode]("labels", fromLabels(network.getLabels))
        if (network.getPortMappingsCount > 0) one.put("port_mappings", network.getPortMappingsCount)
      }
    }
    line
  }
}
