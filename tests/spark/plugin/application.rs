//! An application of Spark on the plug-in, run by `spark-submit`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::eventually;
use crate::real::process::Watched;
use crate::support::Folder;

/// The value of a setting that nobody may see.
pub(crate) const SECRET: &str = "no-one-may-see-this";

/// The settings that all applications have.
const USUAL: [&str; 8] = [
    "spark.driver.host=127.0.0.1",
    "spark.driver.bindAddress=127.0.0.1",
    "spark.driver.memory=512m",
    "spark.executor.cores=1",
    "spark.executor.memory=512m",
    "spark.shuffle.io.retryWait=1s",
    "spark.ui.enabled=false",
    "spark.ui.showConsoleProgress=false",
];

/// A running application. Dropping it kills its driver.
pub(crate) struct Application {
    watched: Watched,
    pub(crate) folder: Folder,
}

impl Application {
    /// Starts a scene of `application.py` with its arguments; `settings` are KEY=VALUE.
    pub(crate) fn start(
        spark: &str,
        cluster: &str,
        settings: &[&str],
        scene: &[&str],
    ) -> Application {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/spark/application.py");
        let script = script.display().to_string();
        Application::submit(spark, &[], cluster, settings, &[&[script.as_str()], scene].concat())
    }

    /// Starts one of Spark's shells at a terminal of `ctrl_c.py`.
    pub(crate) fn shell(spark: &str, name: &str, cluster: &str, settings: &[&str]) -> Application {
        Application::submit(spark, &["--shell", name], cluster, settings, &[])
    }

    /// Starts the scene `plain` of `application.py` with Python alone; `end` is how it ends.
    pub(crate) fn plain(spark: &str, cluster: &str, settings: &[&str], end: &str) -> Application {
        let (folder, own) = Application::place();
        let master = format!("spark-offermill:{cluster}");
        let start = ["--spark", spark, "--plain", "--", env!("CARGO_BIN_EXE_offermill"), &master];
        let own = own.iter().map(String::as_str);
        let settings: Vec<&str> = own.chain(USUAL).chain(settings.iter().copied()).collect();
        let arguments = [&start, &settings[..], &[end]].concat();
        let watched = Watched::start_in(&folder.0, "submit", &arguments);
        Application { watched, folder }
    }

    /// A folder for an application, and the settings that keep it there.
    fn place() -> (Folder, [String; 1]) {
        let folder = Folder::new();
        let temporary = folder.0.join("tmp");
        fs::create_dir(&temporary).unwrap();
        let java = format!("-Djava.io.tmpdir={}", temporary.display());
        (folder, [format!("spark.driver.extraJavaOptions={java}")])
    }

    fn submit(
        spark: &str,
        flags: &[&str],
        cluster: &str,
        settings: &[&str],
        program: &[&str],
    ) -> Application {
        let (folder, own) = Application::place();
        let master = format!("spark-offermill:{cluster}");
        let binary = format!("spark.offermill.binary={}", env!("CARGO_BIN_EXE_offermill"));
        let mut arguments = [&["--spark", spark], flags, &["--", "--master", &master]].concat();
        let own = own.iter().map(String::as_str).chain([binary.as_str()]);
        for setting in own.chain(USUAL).chain(settings.iter().copied()) {
            arguments.extend(["--conf", setting]);
        }
        arguments.extend(program);
        let watched = Watched::start_in(&folder.0, "submit", &arguments);
        Application { watched, folder }
    }

    /// Waits for the next line of output that contains `beginning`, and returns the text after it.
    #[track_caller]
    pub(crate) fn line(&mut self, beginning: &str) -> String {
        self.watched.line(beginning)
    }

    /// The number of lines so far that contain a text.
    pub(crate) fn count(&mut self, text: &str) -> usize {
        self.watched.seen().iter().filter(|line| line.contains(text)).count()
    }

    /// The driver's process, a Java.
    pub(crate) fn driver(&self) -> u32 {
        self.watched.id()
    }

    /// The process of `offermill`, a child of the driver.
    pub(crate) fn offermill(&self) -> u32 {
        let driver = self.driver().to_string();
        eventually(Duration::from_secs(30), "offermill", || {
            let output = Command::new("pgrep").args(["-P", &driver, "-x", "offermill"]).output();
            let text = String::from_utf8(output.unwrap().stdout).unwrap();
            text.trim().parse().map_err(|_| format!("pgrep says {text:?}"))
        })
    }

    /// The process of an executor, a Java.
    pub(crate) fn executor(framework: &str, name: &str) -> u32 {
        eventually(Duration::from_secs(60), "an executor's process", || {
            let executors = executors_of(framework);
            let is_it = |process: &u32| {
                command_line(*process).windows(2).any(|two| two == ["--executor-id", name])
            };
            executors.into_iter().find(is_it).ok_or_else(|| format!("no {name}"))
        })
    }

    /// No command line, no line of the log and no file of the driver has the secret.
    #[track_caller]
    pub(crate) fn assert_discreet(&mut self, framework: &str) {
        let executors = executors_of(framework);
        assert_eq!(executors.len(), 2);
        // What the driver itself was given is the user's business.
        let is_driver = |words: &[String]| words.iter().any(|it| it.ends_with("application.py"));
        let processes = self.folder.processes().into_iter().chain(executors);
        let lines: Vec<_> = processes.map(command_line).filter(|it| !is_driver(it)).collect();
        let has = |program: &str| lines.iter().any(|words| words[0].ends_with(program));
        assert!(has("offermill") && has("java"), "{lines:?}");
        let tells = |words: &&Vec<String>| words.iter().any(|word| word.contains(SECRET));
        assert_eq!(lines.iter().find(tells), None);
        assert_eq!(self.files(), Vec::<String>::new());
        assert_eq!(self.count(SECRET), 0);
    }

    /// The names of the plug-in's temporary files.
    pub(crate) fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.0.join("tmp")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("offermill-")).collect()
    }

    /// Waits until no process is left: no executor, no watchdog, no Offermill.
    #[track_caller]
    pub(crate) fn assert_deserted(&self, within: Duration) {
        eventually(within, "the end of all processes", || {
            let left = self.folder.processes();
            let lines: Vec<_> = left.iter().map(|one| command_line(*one).join(" ")).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{lines:#?}")) }
        });
    }

    /// Waits for the driver's end, and returns its exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.watched.end()
    }
}

/// The processes of a framework's executors.
fn executors_of(framework: &str) -> Vec<u32> {
    let is_it = |number: &u32| {
        let words = command_line(*number);
        // The launcher has the same arguments; it computes the executor's command line.
        words.first().is_some_and(|program| program.ends_with("java"))
            && !words.iter().any(|word| word == "org.apache.spark.launcher.Main")
            && words.windows(2).any(|two| two == ["--app-id", framework])
    };
    let names = fs::read_dir("/proc").unwrap();
    let names = names.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    names.filter(is_it).collect()
}

/// The arguments of a process.
pub(crate) fn command_line(process: u32) -> Vec<String> {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).split('\0').map(str::to_owned).collect()
}
