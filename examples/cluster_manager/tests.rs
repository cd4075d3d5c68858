//! A test of the agent, whose calls arrive in any order.

use offermill::engine::cluster_manager::Events;

use super::*;

/// Keeps what the agent sends.
#[derive(Default)]
struct Sent(Mutex<Vec<Event>>);

impl Events for Sent {
    fn send(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

impl Sent {
    /// The ids of all offers so far.
    fn offers(&self) -> Vec<String> {
        let sent = self.0.lock().unwrap();
        let offers = sent.iter().filter_map(|event| match event {
            Event::Offers(offers) => Some(offers.iter().map(|offer| offer.id.clone())),
            _ => None,
        });
        offers.flatten().collect()
    }
}

/// Goal: a decline of an offer that was rescinded meanwhile leaves the newer offer as it is: that one is answered
/// by its own decline, and refused no earlier. Method: an executor ends while its agent's offer is open; then a
/// decline of the former offer, and one of the present.
#[test]
fn a_late_decline_refuses_nothing() {
    let sent = Arc::new(Sent::default());
    let (sender, messages) = channel();
    let mut agent = Agent::new(Arc::clone(&sent) as EventSink, sender);
    let start = Start {
        executor: "e".to_owned(),
        cores: MilliCpus::from_cores(1),
        work: Duration::from_secs(3600),
    };
    let (refuse, never) = (Duration::ZERO, Duration::from_secs(3600));
    agent.offer();
    let first = sent.offers()[0].clone();
    agent.apply(Message::Accept { offer: first, executors: vec![start], refuse });
    agent.offer();
    agent.apply(Message::Kill { executor: "e".to_owned() });
    agent.apply(messages.recv().unwrap()); // its end, so that the second offer is rescinded
    agent.offer();
    let [_, second, third] = <[String; 3]>::try_from(sent.offers()).unwrap();

    agent.apply(Message::Decline { offers: vec![second], refuse: never });
    assert_eq!(agent.open_offer.as_ref(), Some(&third));
    assert!(agent.offer_again <= Instant::now());
    agent.apply(Message::Decline { offers: vec![third], refuse: never });
    assert_eq!(agent.open_offer, None);
    agent.offer();
    assert_eq!(sent.offers().len(), 3, "what was refused is not offered again yet");
}
