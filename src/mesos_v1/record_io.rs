//! [`RecordReader`]: splits a stream of RecordIO frames into records. A frame is the record's length in decimal, a line
//! break, and the record's bytes.
//!
//! ```text
//! 20\n{"type":"HEARTBEAT"}20\n{"type":"HEARTBEAT"}
//! ```
//!
//! The stream arrives in pieces of any size. The records don't depend on how it is split.

use std::collections::VecDeque;
use std::fmt;

/// The maximum number of digits of a length.
const DIGITS_MAX: u32 = 20;
/// The maximum length of a record that is skipped because it is longer than allowed, in bytes. It takes no memory, but
/// the records after it have to wait for its end.
pub const SKIPPED_BYTES_MAX: u64 = 1 << 32;

/// Assembles records from the pieces of a stream.
///
/// It holds at most twice as many bytes as it received, whatever length the stream announces, and copies each byte
/// a constant number of times. A record that is longer than allowed is [skipped](RecordError::Skipped). After any other
/// error the reader ignores all further input, because the start of the next record is unknown.
///
/// ```
/// use offermill::mesos_v1::record_io::RecordReader;
///
/// let mut reader = RecordReader::new(1 << 20);
/// reader.push(b"5\nhel");
/// assert_eq!(reader.next(), None);
/// reader.push(b"lo3\nyou");
/// assert_eq!(reader.next(), Some(Ok(b"hello".to_vec())));
/// assert_eq!(reader.next(), Some(Ok(b"you".to_vec())));
/// assert_eq!(reader.next(), None);
/// ```
#[derive(Debug)]
pub struct RecordReader {
    record_bytes_max: usize,
    state: Parse,
    /// Complete records and errors, in the order of the stream.
    read: VecDeque<Result<Vec<u8>, RecordError>>,
    /// The number of records that were completed so far, with those that were skipped.
    completed: u64,
}

/// What the next byte belongs to.
#[derive(Debug)]
enum Parse {
    /// A length: its value and number of digits so far. The value saturates at the largest number.
    Length { length: u64, digits: u32 },
    /// A record, and the number of missing bytes, which is at least one.
    Record { record: Vec<u8>, missing: usize },
    /// A record that is skipped, and the number of missing bytes, which is at least one.
    Skipped { missing: u64 },
    /// Nothing, because there was an error.
    Failed,
}

const BETWEEN_RECORDS: Parse = Parse::Length { length: 0, digits: 0 };

impl RecordReader {
    /// Creates a reader for a stream whose records have at most `record_bytes_max` bytes.
    #[must_use]
    pub fn new(record_bytes_max: usize) -> RecordReader {
        RecordReader {
            record_bytes_max,
            state: BETWEEN_RECORDS,
            read: VecDeque::new(),
            completed: 0,
        }
    }

    /// Adds the next piece of the stream. [`RecordReader::next`] returns the records that it completes.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            match &mut self.state {
                Parse::Length { length, digits } => {
                    rest = after;
                    match length_with(byte, length, digits, self.record_bytes_max) {
                        Ok(None) => {}
                        Ok(Some(missing)) => {
                            self.state = Parse::Record { record: Vec::new(), missing }
                        }
                        Err(error) => {
                            self.read.push_back(Err(error));
                            self.state = match error {
                                RecordError::Skipped { length, .. } => {
                                    Parse::Skipped { missing: length }
                                }
                                _ => Parse::Failed,
                            };
                        }
                    }
                }
                Parse::Record { record, missing } => {
                    let (part, others) = rest.split_at(rest.len().min(*missing));
                    reserve(record, part.len(), *missing);
                    record.extend_from_slice(part);
                    *missing -= part.len();
                    rest = others;
                    if *missing == 0 {
                        self.read.push_back(Ok(std::mem::take(record)));
                        self.completed += 1;
                        self.state = BETWEEN_RECORDS;
                    }
                }
                Parse::Skipped { missing } => {
                    let skipped =
                        usize::try_from(*missing).map_or(rest.len(), |it| it.min(rest.len()));
                    rest = rest.get(skipped..).unwrap_or_default();
                    *missing -= skipped as u64;
                    if *missing == 0 {
                        self.completed += 1;
                        self.state = BETWEEN_RECORDS;
                    }
                }
                Parse::Failed => return,
            }
        }
    }

    /// Returns the next complete record. An error is returned once, after the records before it; that of a record that
    /// is skipped, as soon as its length is known.
    #[allow(clippy::should_implement_trait, reason = "none yet doesn't mean that none will come")]
    pub fn next(&mut self) -> Option<Result<Vec<u8>, RecordError>> {
        self.read.pop_front()
    }

    /// Returns the number of records that were completed so far, with those that were skipped.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Returns whether the stream may end here, because no record has begun.
    #[must_use]
    pub fn is_between_records(&self) -> bool {
        matches!(self.state, Parse::Length { digits: 0, .. })
    }
}

/// Adds a byte to a length. Returns the whole length if the byte is the line break.
fn length_with(
    byte: u8,
    length: &mut u64,
    digits: &mut u32,
    record_bytes_max: usize,
) -> Result<Option<usize>, RecordError> {
    match byte {
        b'0'..=b'9' if *digits == DIGITS_MAX => Err(RecordError::ManyDigits),
        b'0'..=b'9' => {
            *length = length.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
            *digits += 1;
            Ok(None)
        }
        b'\n' if *digits > 0 => match usize::try_from(*length) {
            Ok(0) => Err(RecordError::Empty),
            Ok(length) if length <= record_bytes_max => Ok(Some(length)),
            _ if *length <= SKIPPED_BYTES_MAX => {
                Err(RecordError::Skipped { length: *length, record_bytes_max })
            }
            _ => Err(RecordError::Long { length: *length }),
        },
        _ => Err(RecordError::NoLength { byte }),
    }
}

/// Reserves memory for `more` bytes. The capacity doubles, so that bytes are seldom moved, but never exceeds the
/// record's length.
fn reserve(record: &mut Vec<u8>, more: usize, missing: usize) {
    if record.capacity() - record.len() < more {
        record.reserve_exact(more.max(record.len()).min(missing));
    }
}

/// The error for a malformed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordError {
    /// A byte in the place of a length is not a digit.
    NoLength {
        /// The byte that is not a digit.
        byte: u8,
    },
    /// A length has more than 20 digits.
    ManyDigits,
    /// A record has the length 0.
    Empty,
    /// A record is longer than allowed. Its bytes are skipped, and the records after it are read.
    Skipped {
        /// The record's length, in bytes.
        length: u64,
        /// The maximum length, in bytes.
        record_bytes_max: usize,
    },
    /// A record is longer than [`SKIPPED_BYTES_MAX`].
    Long {
        /// The record's length in bytes. It saturates at the largest number.
        length: u64,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::NoLength { byte } => {
                write!(
                    f,
                    "a record's length must be digits and a line break, but has a {:?}",
                    char::from(*byte)
                )
            }
            RecordError::ManyDigits => {
                write!(f, "a record's length has more than {DIGITS_MAX} digits")
            }
            RecordError::Empty => f.write_str("a record has the length 0"),
            RecordError::Skipped { length, record_bytes_max } => {
                write!(
                    f,
                    "a record has {length} bytes, but {record_bytes_max} is the most that is allowed"
                )
            }
            RecordError::Long { length } => {
                write!(
                    f,
                    "a record has {length} bytes, and at most {SKIPPED_BYTES_MAX} are skipped"
                )
            }
        }
    }
}

impl std::error::Error for RecordError {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a whole stream in pieces that end at `cuts`.
    fn read(
        stream: &[u8],
        record_bytes_max: usize,
        cuts: &[usize],
    ) -> Vec<Result<Vec<u8>, RecordError>> {
        let mut reader = RecordReader::new(record_bytes_max);
        let mut found = Vec::new();
        let mut begin = 0;
        for &cut in cuts.iter().chain([&stream.len()]) {
            let end = cut.clamp(begin, stream.len());
            reader.push(&stream[begin..end]);
            found.extend(std::iter::from_fn(|| reader.next()));
            begin = end;
        }
        found
    }

    fn framed(records: &[Vec<u8>]) -> Vec<u8> {
        let framed = |record: &Vec<u8>| [format!("{}\n", record.len()).as_bytes(), record].concat();
        records.iter().flat_map(framed).collect()
    }

    proptest! {
        /// Goal: decoding reverses framing, for any split of the stream. Method: random records, random cuts.
        #[test]
        fn framed_records_come_out(
            records in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            mut cuts in prop::collection::vec(0..400_usize, 0..20),
        ) {
            cuts.sort_unstable();
            let found: Result<Vec<_>, _> = read(&framed(&records), 40, &cuts).into_iter().collect();
            prop_assert_eq!(found, Ok(records));
        }

        /// Goal: the result doesn't depend on the split for malformed streams either. Method: random bytes of all
        /// relevant kinds, in one piece, in random pieces and byte by byte.
        #[test]
        fn pieces_do_not_matter(
            stream in "[0-3\n x-]{0,60}",
            mut cuts in prop::collection::vec(0..60_usize, 0..20),
        ) {
            cuts.sort_unstable();
            let whole = read(stream.as_bytes(), 12, &[]);
            prop_assert_eq!(&read(stream.as_bytes(), 12, &cuts), &whole);
            let all: Vec<usize> = (0..stream.len()).collect();
            prop_assert_eq!(&read(stream.as_bytes(), 12, &all), &whole);
            let goes_on = |it: &Result<_, _>| matches!(it, Ok(_) | Err(RecordError::Skipped { .. }));
            prop_assert!(whole.iter().rev().skip(1).all(goes_on), "{:?}", whole);
        }
    }

    /// Goal: each error is reported as such, after the records before it. Method: one stream per error.
    #[test]
    fn mistakes() {
        let long = |length| RecordError::Long { length };
        for (stream, error) in [
            ("\n", RecordError::NoLength { byte: b'\n' }),
            (" 1\na", RecordError::NoLength { byte: b' ' }),
            ("+1\na", RecordError::NoLength { byte: b'+' }),
            ("-1\na", RecordError::NoLength { byte: b'-' }),
            ("1\r\na", RecordError::NoLength { byte: b'\r' }),
            ("0\n", RecordError::Empty),
            ("00000000000000000000\n", RecordError::Empty),
            ("000000000000000000001\na", RecordError::ManyDigits),
            ("4294967297\n", long(SKIPPED_BYTES_MAX + 1)),
            ("18446744073709551615\n", long(u64::MAX)),
            ("99999999999999999999\n", long(u64::MAX)),
        ] {
            let stream = format!("1\na{stream}1\nb");
            assert_eq!(
                read(stream.as_bytes(), 9, &[]),
                [Ok(b"a".to_vec()), Err(error)],
                "{stream:?}"
            );
            assert!(error.to_string().len() < 100, "{error}");
        }
        assert_eq!(read(b"00000000000000000001\na", 9, &[]), [Ok(b"a".to_vec())]);
    }

    /// Goal: a record that is longer than allowed is reported and skipped, takes no memory, and what comes after it is
    /// read. Method: one between others, of lengths around the limit, in one piece and byte by byte.
    #[test]
    fn long_records_are_skipped() {
        for length in [10, 11, 1000] {
            let stream = framed(&[b"a".to_vec(), vec![b'1'; length], b"b".to_vec()]);
            let skipped = RecordError::Skipped { length: length as u64, record_bytes_max: 9 };
            let expected = [Ok(b"a".to_vec()), Err(skipped), Ok(b"b".to_vec())];
            let all: Vec<usize> = (0..stream.len()).collect();
            assert_eq!(read(&stream, 9, &[]), expected);
            assert_eq!(read(&stream, 9, &all), expected);
        }
        let mut reader = RecordReader::new(9);
        reader.push(b"4294967296\n");
        (0..100).for_each(|_| reader.push(&[b'1'; 1000]));
        assert!(matches!(reader.state, Parse::Skipped { missing: 4_294_867_296 }));
        assert!(matches!(reader.next(), Some(Err(RecordError::Skipped { .. }))));
        assert_eq!((reader.next(), reader.is_between_records()), (None, false));
    }

    /// Goal: a length alone takes no memory, and bytes take at most twice their number. Method: the largest length,
    /// then bytes in pieces; the capacity after each.
    #[test]
    fn memory_follows_bytes() {
        let mut reader = RecordReader::new(usize::MAX);
        reader.push(b"18446744073709551615\n");
        for pushed in 0..100_usize {
            let room = match &reader.state {
                Parse::Record { record, .. } => record.capacity(),
                _ => 0,
            };
            assert!(room <= 2 * 1000 * pushed, "{room} after {pushed}");
            reader.push(&[b'x'; 1000]);
        }
        assert!(!reader.is_between_records());
        assert_eq!(reader.next(), None);
    }

    /// Goal: a large record is assembled without moving its bytes repeatedly. Method: 2.4 MB in pieces of 16 KiB; the
    /// capacity changes a few times, and finally equals the record's length.
    #[test]
    fn large_records_are_moved_seldom() {
        let record = vec![b'x'; 2_400_000];
        let mut reader = RecordReader::new(1 << 26);
        let (mut rooms, mut last) = (0, 0);
        for piece in framed(std::slice::from_ref(&record)).chunks(16 << 10) {
            reader.push(piece);
            if let Parse::Record { record, .. } = &reader.state {
                rooms += usize::from(record.capacity() != last);
                last = record.capacity();
            }
        }
        assert!(rooms < 12, "{rooms} rooms");
        let read = reader.next().unwrap().unwrap();
        assert!(read == record && read.capacity() == record.len());
    }
}
