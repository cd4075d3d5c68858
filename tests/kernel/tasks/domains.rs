//! Domains over which tasks are spread: their numbers, their rooms and the tasks in each.

use offermill::choosers::{Chooser, Domains};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Attribute, Decisions, IdScheme, Kernel, Offer, Picks, Resource, Task};

use crate::world::{Setup, at};

/// Goal: a name has one number, by which its tasks are found; counts neither overflow nor fall below zero. Method: two
/// names, additions and removals.
#[test]
fn each_name_has_a_number_and_a_count() {
    let mut domains = Domains::new();
    assert_eq!(domains.tasks(), [0; 0]);
    assert_eq!(["west", "east", "west"].map(|name| domains.number(name)), [0, 1, 0]);
    domains.add("east", 3);
    domains.add("north", 2);
    assert_eq!(domains.tasks(), [0, 3, 2]);
    domains.remove("east", 1);
    domains.remove("north", 9);
    domains.remove("south", 1);
    assert_eq!(domains.tasks(), [0, 2, 0], "a name that nobody has named is not added");
    domains.add("west", 1);
    domains.add("west", u32::MAX);
    assert_eq!(domains.tasks()[0], u32::MAX);
}

/// Goal: a room's domain is the attribute's text of its first offer; a number is no text, and a room without the
/// attribute is in no domain. Method: agents of both kinds, in rooms behind a declined offer, and a spread over them
/// and a domain without rooms.
#[test]
fn rooms_are_in_the_domains_of_their_offers() {
    let kernel = Kernel::new(Setup::default().config(), IdScheme::plain());
    let resources = [Resource::scalar("cpus", 2.0), Resource::scalar("mem", 400.0)];
    let zone = |name| [Attribute::scalar("rack", 4.0), Attribute::text("zone", name)];
    let [east, west] = ["east", "west"].map(zone);
    let numbered = [Attribute::scalar("zone", 4.0), Attribute::text("rack", "east")];
    let offer = |id, resources, attributes| Offer::new(id, id, "host", resources, attributes);
    let offers = [
        offer("small", &resources[..1], &east),
        offer("west", &resources, &west),
        offer("east", &resources, &east),
        offer("number", &resources, &numbered),
        offer("none", &resources, &[]),
        offer("west again", &resources, &west),
    ];
    assert_eq!(Domains::text(&offers[1], "zone"), Some("west"));
    assert_eq!(Domains::text(&offers[1], "rack"), None, "it is a number");
    assert_eq!(Domains::text(&offers[1], "row"), None);
    let named = ["@hostname", "@region", "@zone"];
    let mut placed = offers[1];
    (placed.region, placed.zone) = (Some("eu"), Some("a"));
    assert_eq!(
        named.map(|name| Domains::text(&placed, name)),
        [Some("host"), Some("eu"), Some("a")]
    );
    let nowhere = Offer::new("O", "S", "", &resources, &west);
    assert_eq!(named.map(|name| Domains::text(&nowhere, name)), [None; 3]);

    let (mut domains, mut picks) = (Domains::new(), Picks::new());
    domains.number("south");
    let mut handler = kernel.handler();
    let rooms = handler.propose(&offers, at(0));
    let of_room = domains.of_rooms(&rooms, |offer| Domains::text(offer, "zone"));
    assert_eq!(of_room, [1, 2, Domains::NONE, Domains::NONE, 1]);
    assert_eq!(domains.tasks(), [0; 3]);

    let tasks = [1, 2, 3].map(|tag| Task::new(tag, MilliCpus::from_cores(1), Mebibytes::new(1)));
    assert!(picks.is_empty());
    Chooser::new().spread(rooms.list(), &of_room, domains.tasks(), 1, &tasks, &mut picks);
    assert!(!picks.is_empty());
    assert_eq!(picks.iter().map(|pick| pick.room).collect::<Vec<_>>(), [0, 1]);
    let mut decisions = Decisions::new();
    rooms.commit(&picks, at(0), &mut decisions);
    assert_eq!(decisions.executors(), 2);
}

/// Goal: tasks are spread over the zones of agents' fault domains, no two further apart than is asked. Method: agents
/// of three zones, of which one has room for one task and one for many, at most 1, 2 and 3 apart.
#[test]
fn zones_stay_as_near_as_asked() {
    for apart in 1..=3 {
        let kernel = Kernel::new(Setup::default().config(), IdScheme::plain());
        let resources =
            |cores| [Resource::scalar("cpus", cores), Resource::scalar("mem", 100.0 * cores)];
        let amounts = [1.0, 40.0, 9.0].map(resources);
        let offers = [0, 1, 2].map(|at: usize| {
            let name = ["a", "b", "c"][at];
            let mut offer = Offer::new(name, name, "host", &amounts[at], &[]);
            offer.zone = Some(name);
            offer
        });
        let (mut domains, mut chooser, mut picks) = (Domains::new(), Chooser::new(), Picks::new());
        let mut handler = kernel.handler();
        let mut decisions = Decisions::new();
        let rooms = handler.propose(&offers, at(0));
        let of_room = domains.of_rooms(&rooms, |offer| Domains::text(offer, "@zone"));
        let task = |tag| Task::new(tag, MilliCpus::from_cores(1), Mebibytes::new(1));
        let tasks: Vec<Task> = (0..30).map(task).collect();
        chooser.spread(rooms.list(), &of_room, domains.tasks(), apart, &tasks, &mut picks);
        rooms.commit(&picks, at(0), &mut decisions);
        for accepted in decisions.accepts() {
            let zone = Domains::text(&offers[accepted.offers[0] as usize], "@zone").unwrap();
            domains.add(zone, accepted.executors.len() as u32);
        }
        let others = (1 + apart).min(9);
        assert_eq!(domains.tasks(), [1, others, others], "at most {apart} apart");
    }
}
