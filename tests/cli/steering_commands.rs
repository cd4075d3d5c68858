//! Tests of the commands of a parent (`--steered`): their bounds, their names, and commands that are repeated.

use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::steering::{ask, start};
use crate::support::{Folder, finish};

/// Goal: a parent that says the same again and again doesn't start the wait for hosts anew each time, by which no
/// executor would ever start elsewhere. Method: a wait of a second for a host that isn't there; the same command five
/// times a second, with and without the limit.
#[test]
fn the_same_again_delays_nothing() {
    for again in ["limit 1 locality far-away=3", "locality far-away=3"] {
        let folder = Folder::new();
        let (mut run, mut input) =
            start(&folder, &["-c", "spark.locality.wait=1s"], &["sleep", "1000"]);
        run.event_named("registered");
        ask(&mut run, &mut input, "limit 1 locality far-away=3");
        let give_up = Instant::now() + Duration::from_secs(10);
        loop {
            ask(&mut run, &mut input, again);
            if ask(&mut run, &mut input, "status json")["answer"]["executors"]["running"] == 1 {
                break;
            }
            assert!(Instant::now() < give_up, "no executor starts");
            sleep(Duration::from_millis(200));
        }
        drop(input);
        assert_eq!(run.end().code, Some(0));
    }
}

/// Goal: the largest numbers that parents use for "no limit" are limits, and the answer says the one that holds.
/// Method: the largest `Int` of Java, the largest number of 32 bits, and one more.
#[test]
fn a_huge_limit_is_the_highest_possible() {
    let folder = Folder::new();
    let (mut run, mut input) = start(&folder, &[], &["sleep", "1000"]);
    for (limit, from) in [(2_147_483_647_u32, 0), (4_294_967_295, 4_194_303)] {
        let answer = ask(&mut run, &mut input, &format!("limit {limit}"));
        let detail = json!({"from": from, "to": 4_194_303, "hosts": []});
        assert_eq!((&answer["ok"], &answer["detail"]), (&json!(true), &detail), "{answer}");
        assert!(answer["answer"].as_str().unwrap().ends_with(", the highest possible"));
    }
    let answer = ask(&mut run, &mut input, "limit 4294967296");
    assert_eq!(answer["ok"], false, "{answer}");
    drop(input);
    assert_eq!(run.end().code, Some(0));
}

/// Goal: the hosts of a large cluster fit into a command. Method: 10 000 hosts with long names, of which the last is
/// here; the journal is replayed.
#[test]
fn the_hosts_of_a_large_cluster_are_one_command() {
    let folder = Folder::new();
    let flags = ["-c", "spark.locality.wait=1h", "--journal", "J"];
    let (mut run, mut input) = start(&folder, &flags, &["sleep", "1000"]);
    run.event_named("registered");
    let hosts: Vec<String> = (0..10_000)
        .map(|number| format!("datanode-{number:05}.rack-{}.data.centre.example=3", number % 97))
        .collect();
    let answer =
        ask(&mut run, &mut input, &format!("limit 1 locality {} agent-1=1", hosts.join(" ")));
    assert_eq!(answer["answer"], "limit 0 -> 1; executors start on 10 001 hosts if possible");
    assert_eq!(answer["detail"]["hosts"].as_array().unwrap().len(), 10_001);
    assert_eq!(run.event_named("placed")["host"], "agent-1");
    ask(&mut run, &mut input, "stop");
    assert_eq!(run.end().code, Some(0));
    let replayed = finish(&folder, &["replay", "J", "--expect", "J.answers"]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.output, replayed.errors);
}

/// Goal: a parent that missed events finds in the state of the run, and in the summary, what they said: the processes
/// of living executors, and how others ended. Method: two executors, of which one is asked to end;
/// compare with its events.
#[test]
fn the_state_has_what_events_said() {
    let folder = Folder::new();
    let (mut run, mut input) = start(&folder, &[], &["sleep", "1000"]);
    ask(&mut run, &mut input, "limit 2");
    let running = [(); 2].map(|()| run.event_named("running"));
    ask(&mut run, &mut input, "limit 1");
    input
        .write_all(format!("kill {}\n", running[0]["executor"].as_str().unwrap()).as_bytes())
        .unwrap();
    let ended = run.event_named("ended");
    let status = ask(&mut run, &mut input, "status json")["answer"].clone();
    assert_eq!(status["ended_not_listed"], 0);
    let living =
        (&status["living"][0], &running[1], &["executor", "pid", "sandbox", "address"][..]);
    let end = ["executor", "state", "exit_code", "signal", "cause", "ran_ms", "message"];
    let dead = (&status["ended"][0], &ended, &end[..]);
    input.write_all(b"stop\n").unwrap();
    let summary = run.event_named("summary");
    // Either of the two may have been the first that ran.
    let executors = summary["executors"].as_array().unwrap();
    let own = executors.iter().find(|it| it["executor"] == ended["executor"]).unwrap();
    let summed = (own, &ended, &end[..]);
    for (found, expected, keys) in [living, dead, summed] {
        for key in keys {
            assert_eq!(found[key], expected[key], "{key}: {found}");
        }
    }
    assert_eq!((&ended["cause"], &ended["signal"]), (&json!("requested"), &json!(15)));
    assert_eq!(run.end().code, Some(0));
    drop(input);
}

/// Goal: a command that can't be read is answered under its name. Method: lines that are too long or not UTF-8.
#[test]
fn a_refused_line_keeps_its_name() {
    let folder = Folder::new();
    let (mut run, mut input) = start(&folder, &[], &["sleep", "1000"]);
    let long = format!("id=k-1 kill {}\n", "x".repeat(1 << 20));
    for (line, id) in [(long.as_bytes(), "k-1"), (b"id=k-2 kill \xff\n", "k-2")] {
        input.write_all(line).unwrap();
        let answer = run.event_named("answer");
        assert_eq!((&answer["id"], &answer["ok"]), (&json!(id), &json!(false)), "{answer}");
    }
    drop(input);
    assert_eq!(run.end().code, Some(0));
}
