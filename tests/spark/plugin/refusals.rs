//! Drivers that can't have executors.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::SPARK_3;
use super::application::Application;
use crate::support::Folder;

/// Goal: what can't be is refused with a sentence that says what is wrong, once, soon, and leaves nothing. Method:
/// contexts with one mistake each, one after the other in one driver, whose program and whose log have the sentence.
#[test]
#[ignore = "needs Spark"]
fn mistakes_are_named() {
    let folder = Folder::new();
    let program = |name: &str, script: &str| {
        let path = folder.write(name, &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        format!("spark.offermill.binary={}", path.display())
    };
    let old = program("old", "echo \"error: unexpected argument '--steered' found\" >&2; exit 2");
    let newer = program("newer", "echo '{\"event\":\"started\",\"protocol\":2}'; exec sleep 600");
    let other = program("other", "echo Usage; exec sleep 600");
    let cases: &[(&str, &str)] = &[
        ("spark.offermill.binary=/nowhere", "spark.offermill.binary is \"/nowhere\""),
        (&old, "unexpected argument '--steered' found"),
        (&newer, "it speaks protocol 2, but this plug-in 1"),
        (&other, "isn't JSON"),
        ("spark.master=spark-offermill:", "such as spark-offermill:local[*]"),
        ("spark.master=spark-offermill:nonsense", "\"nonsense\""),
        (
            "spark.master=spark-offermill:k8s://127.0.0.1:1",
            "but on Kubernetes Offermill doesn't run",
        ),
        ("spark.offermill.placement=sideways", "round-robin or consolidate"),
        ("spark.executor.minMemoryOverhead=much", "spark.executor.minMemoryOverhead: "),
        ("spark.executor.resource.fpga.amount=1", "of such resources Offermill has gpu alone"),
        ("spark.submit.deployMode=cluster", "--deploy-mode cluster isn't supported"),
        (
            "spark.master=offermill:mesos://127.0.0.1:1;spark.offermill.mesos.user=root;\
             spark.offermill.registrationTimeout=6s",
            "subscribing at 127.0.0.1:1: ",
        ),
    ];
    let scene: Vec<&str> =
        ["refusals"].into_iter().chain(cases.iter().map(|case| case.0)).collect();
    let mut application = Application::start(SPARK_3, "local", &[], &scene);
    for (case, why) in cases {
        let refusal = application.line("REFUSED ");
        assert_eq!(refusal.matches(why).count(), 1, "{case}: {refusal}");
        let seconds: u32 = refusal.split(' ').next().unwrap().parse().unwrap();
        assert!(seconds < 30, "{case}: {refusal}");
    }
    assert_eq!(application.end(), Some(0));
    assert_eq!(application.count("TAKEN "), 0);
    for (case, why) in cases {
        assert_eq!(application.count(why), 2, "{case}");
    }
    // Of a cluster that can't be reached nothing else is told.
    assert_eq!(application.count("Offermill waits for "), 0);
    application.assert_deserted(Duration::from_secs(5));
    assert_eq!(application.files(), Vec::<String>::new());
}
