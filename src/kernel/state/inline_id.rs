//! [`InlineId`]: an agent's id, kept in place if it has a usual length.

/// The number of bytes that are kept in place: those of the ids that Mesos gives, with some to spare. With it, what a
/// handler remembers of an agent takes a cache line and a half.
const INLINE_BYTES: usize = 54;

/// A copy of an agent's id. It lies beside what is known of the agent, so that no pointer has to be followed before the
/// two ids are compared; a long one lies elsewhere.
#[derive(Debug)]
pub(crate) enum InlineId {
    Short { length: u8, bytes: [u8; INLINE_BYTES] },
    Long(Box<[u8]>),
}

impl InlineId {
    pub(crate) fn new(id: &str) -> InlineId {
        let mut bytes = [0; INLINE_BYTES];
        match (bytes.get_mut(..id.len()), u8::try_from(id.len())) {
            (Some(beginning), Ok(length)) => {
                beginning.copy_from_slice(id.as_bytes());
                InlineId::Short { length, bytes }
            }
            _ => InlineId::Long(id.as_bytes().into()),
        }
    }

    /// Whether length and last byte are those of `id`.
    #[inline]
    pub(crate) fn ends_as(&self, id: &[u8]) -> bool {
        let bytes = self.as_bytes();
        bytes.len() == id.len() && bytes.last() == id.last()
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            InlineId::Short { length, bytes } => {
                bytes.get(..usize::from(*length)).unwrap_or_default()
            }
            InlineId::Long(bytes) => bytes,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: an id of any length is kept as it is. Method: all lengths up to well beyond what fits in place.
    #[test]
    fn ids_of_any_length_are_kept() {
        for length in 0..=2 * INLINE_BYTES + 200 {
            let id = "ä".repeat(length / 2) + &"b".repeat(length % 2);
            let copy = InlineId::new(&id);
            assert_eq!(copy.as_bytes(), id.as_bytes());
            assert_eq!(matches!(copy, InlineId::Short { .. }), id.len() <= INLINE_BYTES);
        }
    }
}
