//! The names of our headers (contract §4). UTF-8 text, decimal numbers, epoch milliseconds, one value per name.

/// Every header of ours begins so; on a topic that is not ours they are ignored and stripped.
pub const PREFIX: &str = "tallyflow-";

/// Topic of the first append.
pub const ORIG_TOPIC: &str = "tallyflow-orig-topic";
/// Topic id of the first append, 32 hexadecimal digits.
pub const ORIG_TOPIC_ID: &str = "tallyflow-orig-topic-id";
/// Partition of the first append.
pub const ORIG_PARTITION: &str = "tallyflow-orig-partition";
/// Offset of the first append.
pub const ORIG_OFFSET: &str = "tallyflow-orig-offset";
/// Which event of a packed record.
pub const ORIG_INDEX: &str = "tallyflow-orig-index";
/// Timestamp of the first append.
pub const ORIG_TIMESTAMP: &str = "tallyflow-orig-timestamp";
/// `CreateTime` or `LogAppendTime`.
pub const ORIG_TIMESTAMP_TYPE: &str = "tallyflow-orig-timestamp-type";
/// Retries already made; absent is 0.
pub const RETRY_COUNT: &str = "tallyflow-retry-count";
/// Due time.
pub const NOT_BEFORE: &str = "tallyflow-not-before";
/// 32 lower-case hexadecimal digits.
pub const FAILURE_ID: &str = "tallyflow-failure-id";
/// The event's id, where it is known.
pub const EVENT_ID: &str = "tallyflow-event-id";
/// The stage that failed.
pub const STAGE: &str = "tallyflow-stage";
/// The version of the program that failed.
pub const CONSUMER_VERSION: &str = "tallyflow-consumer-version";
/// When it failed first.
pub const FIRST_FAILURE_TS: &str = "tallyflow-first-failure-ts";
/// When it failed last.
pub const LAST_FAILURE_TS: &str = "tallyflow-last-failure-ts";
/// `transient` or `permanent`.
pub const ERROR_CLASS: &str = "tallyflow-error-class";
/// A category of the closed list.
pub const ERROR_CATEGORY: &str = "tallyflow-error-category";
/// The kind of error, for grouping.
pub const ERROR_TYPE: &str = "tallyflow-error-type";
/// One sentence, at most [`ERROR_MESSAGE_LIMIT_BYTES`].
pub const ERROR_MESSAGE: &str = "tallyflow-error-message";
/// Set where a text was cut.
pub const ERROR_TRUNCATED: &str = "tallyflow-error-truncated";
/// Set where the original bytes are not in this record.
pub const PAYLOAD_OMITTED: &str = "tallyflow-payload-omitted";
/// `late` or `future`.
pub const VERDICT: &str = "tallyflow-verdict";
/// `age` or `horizon`.
pub const REASON: &str = "tallyflow-reason";
/// Append time − event time in milliseconds.
pub const AGE_MS: &str = "tallyflow-age-ms";

/// The longest error message: 1 KiB.
pub const ERROR_MESSAGE_LIMIT_BYTES: usize = 1024;

/// Cuts `text` to at most `limit_bytes`, at a character. Says whether anything was cut.
pub fn cut(text: &str, limit_bytes: usize) -> (&str, bool) {
    if text.len() <= limit_bytes {
        return (text, false);
    }
    let mut end = limit_bytes;
    while end > 0 && !text.is_char_boundary(end) {
        end -= 1;
    }
    (text.get(..end).unwrap_or(""), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_keeps_characters_whole() {
        assert_eq!(cut("abc", 3), ("abc", false));
        assert_eq!(cut("aéé", 4), ("aé", true));
        assert_eq!(cut("é", 1), ("", true));
        let long = "é".repeat(3_000_000);
        let (text, was_cut) = cut(&long, ERROR_MESSAGE_LIMIT_BYTES);
        assert!(was_cut && text.len() == 1024);
    }
}
