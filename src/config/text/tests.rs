//! Tests of the parsers of settings.

use super::*;
use proptest::prelude::*;

/// Pattern of texts that resemble a number with a unit.
const NEARLY_RIGHT: &str = "[ +-]?[0-9]{0,22}[., ]?[0-9]{0,4} ?[a-zA-Z]{0,3}";
const SECOND: Duration = Duration::from_secs(1);

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.unwrap_err();
    assert!(error.is_setting());
    error.to_string()
}

/// Goal: durations are parsed as Spark parses them. Method: each unit, bare numbers, upper case, white space.
#[test]
fn durations_take_all_units() {
    let read = |text| parse_duration("x", text, TimeUnit::Seconds).unwrap();
    assert_eq!(read("120"), 120 * SECOND);
    assert_eq!(read("120s"), 120 * SECOND);
    assert_eq!(read(" 2 MIN "), 120 * SECOND);
    assert_eq!(read("2m"), 120 * SECOND);
    assert_eq!(read("1h"), 3_600 * SECOND);
    assert_eq!(read("36500d"), DURATION_MAX);
    assert_eq!(read("5ms"), SECOND / 200);
    assert_eq!(read("7us"), Duration::from_micros(7));
    assert_eq!(read("0"), Duration::ZERO);
    assert_eq!(parse_duration("x", "100", TimeUnit::Milliseconds).unwrap(), SECOND / 10);
    assert_eq!(parse_duration("x", "1", TimeUnit::Days).unwrap(), 86_400 * SECOND);
}

/// Goal: the error for an invalid duration contains the setting, the text and what is allowed. Method: one of each
/// kind.
#[test]
fn bad_durations_are_explained() {
    let read =
        |text: &str| message(parse_duration("spark.locality.wait", text, TimeUnit::Milliseconds));
    for text in ["", " ", "s", "-1s", "5 sec", "1s2", "5w", "٣s", "1.s"] {
        assert!(read(text).starts_with(&format!("spark.locality.wait is {text:?}")), "{text}");
        assert!(read(text).ends_with("(a bare number is in milliseconds)"), "{}", read(text));
    }
    assert!(read("0.5s").ends_with("500ms, not 0.5s"), "{}", read("0.5s"));
    for text in ["36501d", "18446744073709551615d", "99999999999999999999999s"] {
        assert!(read(text).contains("at most 36500d"), "{}", read(text));
    }
    assert!(read(&"9".repeat(1 << 20)).len() < 400);
}

/// Goal: memory is parsed as Spark parses it, in MiB. Method: each unit, rounding, edge cases, errors.
#[test]
fn memory_takes_all_units() {
    let read = |text| parse_memory("spark.executor.memory", text);
    for (text, mebibytes) in [
        ("512", 512),
        ("1g", 1024),
        ("1GB", 1024),
        ("3t", 3 << 20),
        ("1p", 1 << 30),
        ("1500k", 1),
        ("2048kb", 2),
        ("1048576b", 1),
        ("0", 0),
        ("0k", 0),
        ("9007199254740m", 9_007_199_254_740),
    ] {
        assert_eq!(read(text).unwrap(), Mebibytes::new(mebibytes), "{text}");
    }
    for text in ["", "m", "-1g", "1x", "1gib", "1 000m", "١g"] {
        assert!(message(read(text)).contains("one of b, k, m, g, t, p"), "{text}");
    }
    assert!(message(read("1.5g")).ends_with("1536m, not 1.5g"));
    assert!(message(read("1023k")).ends_with("at least 1 MiB, or 0"));
    for text in ["9007199254741m", "18446744073709551615p", "18446744073709551616b"] {
        assert!(message(read(text)).contains("at most 9007199254740 MiB"), "{text}");
    }
}

/// Goal: cores keep three decimals, and invalid numbers are rejected. Method: each form and edge cases.
#[test]
fn cores_take_up_to_three_decimals() {
    for (text, millis) in [("2", 2_000), ("0.5", 500), (".25", 250), (" 1.005 ", 1_005)] {
        assert_eq!(parse_cores("x", text).unwrap(), MilliCpus::from_millis(millis), "{text}");
    }
    for text in ["", ".", "2.", "0", "0.000", "-1", "+1", "1e3", "0.0005", "1.2.3", "NaN", "1,5"] {
        assert!(message(parse_cores("x", text)).contains("at most 3 decimals"), "{text}");
    }
    assert!(parse_cores("x", "9007199254740.992").is_ok());
    assert!(parse_cores("x", "9007199254740.993").is_err());
    assert!(parse_cores("x", &"9".repeat(100_000)).is_err());
}

/// Goal: invalid counts, ratios and booleans are rejected. Method: edge cases of each.
#[test]
fn counts_ratios_and_switches_have_edges() {
    assert_eq!(parse_count("x", " 3 ", 1..=3).unwrap(), 3);
    assert!(message(parse_count("x", "4", 1..=3)).ends_with("a whole number from 1 to 3"));
    assert!(message(parse_count("x", "-1", 0..=u64::MAX)).ends_with("of at least 0"));
    assert_eq!(parse_ratio("x", "0.8").unwrap(), 0.8);
    assert!(parse_ratio("x", "-0").unwrap().is_sign_positive());
    for text in ["", "1.01", "-0.1", "NaN", "inf", "80%"] {
        assert!(message(parse_ratio("x", text)).contains("from 0 to 1"), "{text}");
    }
    assert!(parse_bool("x", "TRUE").unwrap());
    assert!(!parse_bool("x", " false ").unwrap());
    assert!(message(parse_bool("x", "yes")).ends_with("must be true or false"));
}

/// Goal: formatted durations are easy to read. Method: one of each form.
#[test]
fn durations_print_in_their_largest_units() {
    for (micros, text) in [
        (0, "0 s"),
        (7, "7 us"),
        (250_000, "250 ms"),
        (5_000_000, "5 s"),
        (1_500_000, "1.5 s"),
        (10_000_000, "10 s"),
        (59_999_999, "59.999 s"),
        (680_000_000, "11 min 20 s"),
        (3_600_000_000, "1 h"),
        (3_660_000_000, "1 h 1 min"),
        (90_000_000_000, "1 d 1 h"),
    ] {
        assert_eq!(format_duration(Duration::from_micros(micros)), text);
    }
    assert_eq!(format_duration(Duration::from_nanos(9)), "9 ns");
    assert!(format_duration(Duration::MAX).ends_with(" h"));
}

proptest! {
    /// Goal: no parser panics, and every error contains the setting's name. Method: arbitrary texts, half of them
    /// almost valid.
    #[test]
    fn readers_are_total(text in prop_oneof![any::<String>(), NEARLY_RIGHT]) {
        let results = [
            parse_duration("name", &text, TimeUnit::Seconds).err(),
            parse_memory("name", &text).err(),
            parse_count("name", &text, 1..=9).err(),
            parse_ratio("name", &text).err(),
            parse_bool("name", &text).err(),
            parse_cores("name", &text).err(),
        ];
        for error in results.into_iter().flatten() {
            prop_assert!(error.to_string().starts_with("name is "));
        }
    }

    /// Goal: printed cores parse back. Method: random numbers of cores.
    #[test]
    fn cores_read_what_they_print(millis in 1..=Scalar::MAX.thousandths()) {
        let cores = MilliCpus::from_millis(millis);
        prop_assert_eq!(parse_cores("x", &cores.to_string()).unwrap(), cores);
    }
}
