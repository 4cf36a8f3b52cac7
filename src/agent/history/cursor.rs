//! Cursors: the sequence of a record's first entry, as opaque text.

use crate::error::{KernelError, Result};

/// Tells the form of the cursor, so that another one can come later.
const PREFIX: &str = "s";
const RADIX: u32 = 36;

pub(super) fn encode(seq: u64) -> String {
    let (mut rest, mut digits) = (seq, Vec::new());
    loop {
        // The remainder is below the radix.
        let digit = u32::try_from(rest % u64::from(RADIX)).unwrap_or(0);
        digits.push(char::from_digit(digit, RADIX).unwrap_or('0'));
        rest /= u64::from(RADIX);
        if rest == 0 {
            break;
        }
    }
    PREFIX.chars().chain(digits.into_iter().rev()).collect()
}

pub(super) fn decode(cursor: &str) -> Result<u64> {
    let seq = cursor
        .strip_prefix(PREFIX)
        .and_then(|digits| u64::from_str_radix(digits, RADIX).ok());
    // Only what `encode` writes is a cursor: no signs, capitals or leading zeros.
    seq.filter(|&seq| encode(seq) == cursor).ok_or_else(|| {
        KernelError::invalid(
            "getHistory options.cursor is not a cursor: it must be the `cursor` of a record or the \
             `nextCursor` of a page",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip() {
        for seq in [0, 1, 35, 36, 1_700_000_000_123_000, u64::MAX] {
            assert_eq!(decode(&encode(seq)).unwrap(), seq);
        }
        assert_eq!(encode(46_655), "szzz");
    }

    #[test]
    fn what_encode_does_not_write_is_refused() {
        for cursor in [
            "",
            "s",
            "1",
            "sZ",
            "s01",
            "s+1",
            "s-1",
            "s 1",
            "s1!",
            "szzzzzzzzzzzzzzz",
        ] {
            let error = decode(cursor).unwrap_err();
            assert_eq!(error.code(), "E_INVALID_CONFIG", "{cursor}");
            assert!(error.message().contains("cursor"));
        }
    }
}
