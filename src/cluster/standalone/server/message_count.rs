//! How many messages a call's bytes have, counted before they are decoded.
//!
//! An empty task takes two bytes of a body, but more than a thousand of memory. So bytes alone don't bound what a call
//! takes once it is decoded: the count of its messages does.

use prost::encoding::{WireType, decode_key, decode_varint};

use crate::mesos_v1::codec::Encoding;

/// The most messages of a call, at all depths. A message takes at most 2 KiB besides its texts.
pub(super) const MESSAGES_MAX: usize = 1 << 15;
/// How deep the decoder descends.
const DEPTH_MAX: usize = 101;
/// The most fields that are looked at.
const STEPS_MAX: usize = 1 << 22;

/// Whether decoding this body makes more than [`MESSAGES_MAX`] messages, or might. Texts may count as messages, if they
/// look like some.
pub(super) fn has_too_many(body: &[u8], encoding: Encoding) -> bool {
    match encoding {
        // Each message begins with one of these.
        Encoding::Json => {
            body.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() > MESSAGES_MAX
        }
        Encoding::Protobuf => {
            let mut scan = ProtobufScan { body, steps: STEPS_MAX };
            scan.level(0, body.len(), DEPTH_MAX, &mut { MESSAGES_MAX }).is_none()
        }
    }
}

/// A walk through fields without a schema: each field with a length is walked through as a message.
struct ProtobufScan<'a> {
    body: &'a [u8],
    steps: usize,
}

impl ProtobufScan<'_> {
    /// Counts down for each message in a part of the body. Returns whether the part is a message, or `None` if there
    /// are too many.
    ///
    /// What isn't a message after all is a text, or where the decoder stops: it isn't counted for what follows it.
    /// The decoder compares a length with the rest of the whole body, and finds out only afterwards that a message
    /// reached beyond the end of the one around it. So such a message counts as all that could be in it.
    fn level(&mut self, mut at: usize, end: usize, depth: usize, left: &mut usize) -> Option<bool> {
        while at < end {
            self.steps = self.steps.checked_sub(1)?;
            let mut rest = self.body.get(at..).unwrap_or_default();
            let Ok((_, wire)) = decode_key(&mut rest) else { return Some(false) };
            let length = match wire {
                WireType::Varint => decode_varint(&mut rest).map(|_| 0),
                WireType::LengthDelimited => decode_varint(&mut rest),
                WireType::SixtyFourBit => Ok(8),
                WireType::ThirtyTwoBit => Ok(4),
                WireType::StartGroup | WireType::EndGroup => Ok(0),
            };
            let length = length.ok().and_then(|length| usize::try_from(length).ok());
            let Some(length) = length.filter(|length| *length <= rest.len()) else {
                return Some(false);
            };
            let begin = self.body.len() - rest.len();
            at = begin + length;
            if wire != WireType::LengthDelimited {
                continue;
            }
            if at > end {
                // A text, or where the decoder stops. To walk through it would lead from each text into those after it,
                // again and again; a message takes two bytes at least.
                left.checked_sub(1 + length / 2)?;
                return Some(false);
            }
            let mut left_after = left.checked_sub(1)?;
            let is_message = match depth.checked_sub(1) {
                Some(depth) => self.level(begin, at, depth, &mut left_after)?,
                None => true,
            };
            if is_message {
                *left = left_after;
            }
        }
        Some(at == end)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::mesos_v1::messages::call::{self, Accept, Type};
    use crate::mesos_v1::messages::{
        AgentId, Call, CommandInfo, Environment, Launch, OfferId, Operation, Resource, Scalar,
        TaskId, TaskInfo, Variable,
    };

    /// A field with a length.
    fn field(number: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        prost::encoding::encode_key(number, WireType::LengthDelimited, &mut bytes);
        prost::encoding::encode_varint(content.len() as u64, &mut bytes);
        bytes.extend(content);
        bytes
    }

    /// Goal: declines of many offers are few messages, whatever the ids of the cluster look like. Method: the declines
    /// of a hundred offers, with ids of many clusters: some were taken for messages within messages.
    #[test]
    fn ids_are_no_messages() {
        for cluster in 0..20_000_u32 {
            let prefix = format!("{:08x}", cluster.wrapping_mul(2_654_435_761));
            let id = |number: u32| OfferId { value: format!("{prefix}-1-O{number}") };
            let offer_ids = (100..200).map(id).collect();
            let decline = call::Decline { offer_ids, filters: None };
            let body = Call { decline: Some(decline), ..Call::default() }.encode_to_vec();
            assert!(!has_too_many(&body, Encoding::Protobuf), "{prefix}");
        }
    }

    fn task(number: usize) -> TaskInfo {
        let resource = |name: &str| Resource {
            name: name.to_owned(),
            scalar: Some(Scalar { value: 2.5 }),
            ..Resource::default()
        };
        let variable = |name: &str| Variable {
            name: name.to_owned(),
            value: Some("/opt/spark/jars/*:/etc/hadoop".to_owned()),
            ..Variable::default()
        };
        let names = ["SPARK_USER", "JAVA_HOME", "SPARK_EXECUTOR_MEMORY", "zzz", "PATH"];
        let command = CommandInfo {
            environment: Some(Environment { variables: names.map(variable).to_vec() }),
            value: Some("exec ./bin/spark-class Backend --cores 2 --app-id x".to_owned()),
            ..CommandInfo::default()
        };
        TaskInfo {
            name: format!("executor {number}"),
            task_id: TaskId { value: format!("etl-{number}") },
            agent_id: AgentId { value: "0123abcd-1-W17".to_owned() },
            resources: ["cpus", "mem", "disk"].map(resource).to_vec(),
            command: Some(command),
            ..TaskInfo::default()
        }
    }

    fn accept(tasks: usize) -> Call {
        let launch = Launch { task_infos: (0..tasks).map(task).collect() };
        let operation = Operation { launch: Some(launch), ..Operation::default() };
        let offer_ids = vec![OfferId { value: "0123abcd-1-O9".to_owned() }];
        let accept = Accept { offer_ids, operations: vec![operation], filters: None };
        Call { r#type: Some(Type::Accept.into()), accept: Some(accept), ..Call::default() }
    }

    /// Goal: ordinary calls are far from the bound. Method: a call with a thousand tasks, in both encodings.
    #[test]
    fn ordinary_calls_are_allowed() {
        let call = accept(1000);
        assert!(!has_too_many(&call.encode_to_vec(), Encoding::Protobuf));
        let json = serde_json::to_vec(&call).unwrap();
        assert!(!has_too_many(&json, Encoding::Json));
    }

    /// Goal: the bound of messages bounds memory. Method: the sizes of the largest messages that repeat.
    #[test]
    fn messages_are_small() {
        assert!(size_of::<TaskInfo>() <= 2048, "{}", size_of::<TaskInfo>());
        assert!(size_of::<Operation>() <= 2048, "{}", size_of::<Operation>());
        assert!(size_of::<Resource>() <= 2048, "{}", size_of::<Resource>());
    }

    /// Goal: no arrangement of empty tasks gets past the bound. Method: in one launch, spread over many, before
    /// garbage, and in a task list that reaches beyond the end of its launch into what looks like another field.
    #[test]
    fn empty_tasks_are_counted() {
        let tasks = |count: usize| [0x0a, 0].repeat(count);
        // Fields 4 of the call, 2 of the accept, and 2 of the operation.
        let call = |launch: &[u8]| field(4, &field(2, &field(2, launch)));
        let is_refused = |body: &[u8]| has_too_many(body, Encoding::Protobuf);
        let decoded = Call::decode(call(&tasks(9)).as_slice()).unwrap().accept.unwrap();
        assert_eq!(decoded.operations[0].launch.as_ref().unwrap().task_infos.len(), 9);
        assert!(!is_refused(&call(&tasks(MESSAGES_MAX - 3))));
        assert!(is_refused(&call(&tasks(MESSAGES_MAX - 2))));
        assert!(is_refused(&call(&tasks(1000)).repeat(33)));
        assert!(is_refused(&call(&[tasks(MESSAGES_MAX), vec![7]].concat())));
        let many = tasks(MESSAGES_MAX);
        // The header of the launch is all that the accept around it has by its length. What follows it begins with a
        // field that the call skips, and whose content isn't a field: seen from the launch, a number and tasks.
        let mut beyond = Vec::new();
        prost::encoding::encode_key(2, WireType::LengthDelimited, &mut beyond);
        let rest = field(100, &[vec![0x08, 0x0f], many].concat());
        prost::encoding::encode_varint(rest.len() as u64, &mut beyond);
        let body = [field(4, &field(2, &beyond)), rest].concat();
        assert!(is_refused(&body));
        let json = format!("[{}]", "{},".repeat(MESSAGES_MAX));
        assert!(has_too_many(json.as_bytes(), Encoding::Json));
    }
}
