//! Requests of a framework that the master can't fulfil, and changes of its constraint.

use std::time::Duration;

use offermill::config::Compatibility;
use offermill::engine::Notice;
use offermill::launch::{CommandForm, CommandTemplate};
use offermill::{Change, Constraint, Fate};
use serde_json::{Value, json};

use super::master::FakeMaster;
use super::script::{Answer, offers, sound};
use super::{framework, mesos};
use crate::framework::{Framework, small_executors};

/// Goal: if a master doesn't accept the constraint, the framework subscribes without it and checks it by itself.
/// Method: the ERROR of `Master::subscribe` when `OfferConstraintsFilter::create` fails; then an offer that doesn't
/// meet the constraint.
#[test]
fn a_master_that_does_not_take_the_constraint() {
    let why =
        "Framework has invalid offer constraints: an invalid 'AttributeConstraint' for role '*'";
    let error = json!({"type": "ERROR", "error": {"message": why}});
    let fake = FakeMaster::new(move |call| match (call.kind.as_str(), call.number) {
        ("SUBSCRIBE", 0) => Answer::stream("s-0").event(&error).end(),
        _ => sound(call),
    });
    let constraint = Constraint::parse("expr:: zone != west and rack").unwrap();
    let config = small_executors(1).constraint(constraint).build().unwrap();
    let framework = Framework::start(mesos(&[fake.port()]), config, "exit").unwrap();
    framework.id();
    let asked: Vec<bool> = fake
        .calls_of("SUBSCRIBE")
        .iter()
        .map(|call| call.body["subscribe"]["offer_constraints"] != Value::Null)
        .collect();
    assert_eq!(asked, [true, false]);
    fake.send(&offers("O-1", "S-1", 4));
    fake.wait_for("DECLINE", 0);
    assert_eq!(fake.calls_of("ACCEPT").len(), 0);
}

/// Goal: executors that can't be expressed as tasks count as failed, and their offers are declined: they are not
/// retried as fast as offers arrive. Method: a command with a line end, in the form for a shell, twice on one agent,
/// with rejections that count; then the agent is excluded.
#[test]
fn a_command_that_can_not_be_sent() {
    let fake = FakeMaster::new(sound);
    let command = CommandTemplate::new(vec!["echo".to_owned(), "two\nlines".to_owned()]);
    let mut compatibility = Compatibility::default();
    compatibility.rejections_count = true;
    let config =
        small_executors(1).exclusion(Some(Default::default())).compatibility(compatibility);
    let config = config.build().unwrap();
    let command = command.form(CommandForm::Shell);
    let framework = Framework::launching(mesos(&[fake.port()]), config, command).unwrap();
    framework.id();
    let excluded = |notice: &Notice| matches!(notice, Notice::AgentExcluded { .. }).then_some(());
    let soon = Duration::from_millis(300);
    let mut sent = 0;
    while framework.notices.wait_for(soon, excluded).is_none() {
        assert!(sent < 30, "{:#?}", framework.notices.all());
        fake.send(&offers(&format!("O-{sent}"), "S-1", 4));
        fake.wait_for("DECLINE", sent);
        sent += 1;
    }
    let failed = |notice: &Notice| match notice {
        Notice::Updated { change: Change::Ended(Fate::Failed), message, .. } => {
            Some(message.clone())
        }
        _ => None,
    };
    let why = framework.notices.wait("failure", failed);
    assert!(why.contains("the launch failed"), "{why}");
    assert_eq!(framework.kernel.totals().executors, 0);
    assert_eq!(fake.calls_of("ACCEPT").len(), 0);
}

/// Goal: a new constraint is sent to the master at once. Method: the manager follows a changed config.
#[test]
fn a_constraint_that_changes() {
    let fake = FakeMaster::new(sound);
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    let constraint = Constraint::parse("rack:").unwrap();
    let config = small_executors(1).constraint(constraint).build().unwrap();
    framework.kernel.reconfigure(config.clone());
    framework.cluster.reconfigure(&config).unwrap();
    let update = fake.wait_for("UPDATE_FRAMEWORK", 0);
    let groups =
        &update.body["update_framework"]["offer_constraints"]["role_constraints"]["*"]["groups"];
    assert_eq!(groups[0]["attribute_constraints"][0]["selector"]["attribute_name"], "rack");
}
