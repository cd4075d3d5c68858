//! What workers and frameworks send to a standalone master. Whatever it is, and in whatever order it comes: what can be
//! read is written as what reads the same; what workers are told is within the protocol's bounds, and is read back the
//! same; nothing is told to a connection that was closed; sentences are short.
//!
//! Input: a line a step. `w N JSON` is a message of a worker on the connection N, a digit, `f N JSON` a framework's
//! call, `c N` closes the connection, `t SECONDS` lets time pass.

#![cfg_attr(fuzzing, no_main)]

use std::time::Duration;

use offermill::cluster::standalone::master::{
    LaunchKey, MasterAction, MasterSettings, StandaloneMaster,
};
use offermill::cluster::standalone::protocol::{
    WorkerCall, decode_call, decode_event, frame_call, frame_event,
};
use offermill::mesos_v1::messages::Call;
use offermill::mesos_v1::messages::call::Type;

/// A master, and what is known of it from outside.
struct Checked {
    master: StandaloneMaster,
    now: Duration,
    /// The number of each digit's connection, if it is open.
    open: [Option<u64>; 10],
    numbers: u64,
}

fn check(data: &[u8]) {
    let settings = MasterSettings {
        cluster: "c".to_owned(),
        term: 1,
        launch_key: LaunchKey::try_from("0".repeat(64)).expect("64 digits"),
        max_cores: None,
        recovery_timeout: Duration::from_secs(15),
        worker_timeout: Duration::from_secs(60),
    };
    let mut checked = Checked {
        master: StandaloneMaster::new(settings, Vec::new()),
        now: Duration::ZERO,
        open: [None; 10],
        numbers: 0,
    };
    data.split(|byte| *byte == b'\n').for_each(|line| checked.step(line));
}

impl Checked {
    fn step(&mut self, line: &[u8]) {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let (word, digit) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let body = words.next().unwrap_or_default();
        if word == b"t" {
            let seconds = std::str::from_utf8(digit).ok().and_then(|it| it.parse::<u16>().ok());
            self.now += Duration::from_secs(seconds.unwrap_or(1).into());
            self.master.tick(self.now);
            return self.judge();
        }
        let [digit @ b'0'..=b'9'] = digit else { return };
        let place = usize::from(digit - b'0');
        match word {
            b"w" => self.worker_says(place, body),
            b"f" => self.framework_calls(place, body),
            b"c" => {
                if let Some(connection) = self.open[place].take() {
                    self.master.connection_closed(connection, self.now);
                }
            }
            _ => {}
        }
        self.judge();
    }

    /// The connection of a digit, which is opened if it isn't.
    fn connection(&mut self, place: usize) -> u64 {
        self.numbers += 1;
        *self.open[place].get_or_insert(self.numbers)
    }

    fn worker_says(&mut self, place: usize, body: &[u8]) {
        let Ok(call) = decode_call(body) else { return };
        let frame = frame_call(&call);
        let again = decode_call(record_of(&frame)).unwrap();
        assert_eq!(again, call, "written and read again");
        let is_new = self.open[place].is_none();
        let connection = self.connection(place);
        match call {
            WorkerCall::Subscribe(said) if is_new => {
                self.master.worker_subscribes(connection, *said, None, self.now);
            }
            call => {
                if self.master.worker_calls(connection, call, self.now).is_err() {
                    self.close(connection);
                }
            }
        }
    }

    fn framework_calls(&mut self, place: usize, body: &[u8]) {
        let Ok(call) = serde_json::from_slice::<Call>(body) else { return };
        let is_new = self.open[place].is_none();
        match (call.r#type(), call.subscribe.clone()) {
            (Type::Subscribe, Some(subscribe)) if is_new => {
                let connection = self.connection(place);
                self.master.framework_subscribes(connection, subscribe, self.now);
            }
            _ => {
                let Some(connection) = self.open[place] else { return };
                if let Err(why) = self.master.framework_calls(connection, call, self.now) {
                    assert!(why.to_string().len() < 400, "{why}");
                }
            }
        }
    }

    fn close(&mut self, connection: u64) {
        self.open.iter_mut().filter(|it| **it == Some(connection)).for_each(|it| *it = None);
        self.master.connection_closed(connection, self.now);
    }

    /// Looks at all that the master wants done.
    fn judge(&mut self) {
        for action in self.master.take_actions() {
            match action {
                MasterAction::TellWorker { to, event } => {
                    assert!(self.open.contains(&Some(to)), "{event:?} to nobody");
                    event.check_message().unwrap();
                    let frame = frame_event(&event);
                    assert_eq!(decode_event(record_of(&frame)).as_ref(), Ok(&event));
                }
                MasterAction::TellFramework { to, event } => {
                    assert!(self.open.contains(&Some(to)), "{event:?} to nobody");
                    serde_json::to_vec(&event).unwrap();
                }
                MasterAction::Close(connection) => {
                    let own = self.open.iter_mut().filter(|it| **it == Some(connection));
                    own.for_each(|it| *it = None);
                }
                MasterAction::Record(entry) => drop(serde_json::to_vec(&entry).unwrap()),
            }
        }
    }
}

/// The message in a frame.
fn record_of(frame: &[u8]) -> &[u8] {
    let end = frame.iter().position(|byte| *byte == b'\n').unwrap();
    &frame[end + 1..]
}

offermill_fuzz::harness!(check);
