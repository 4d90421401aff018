//! Every kind of problem: its code and what it means.
//!
//! What an operator may see has a code and a page: docs/errors.md has one section for each, and a test compares the
//! two. A code is never given to another problem.
//!
//! Must not know: where a problem was found, or its words.

use std::fmt;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// A kind of problem.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// Every code, in their order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The code as users see it, as `TF0102`.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc,)+),)+
                }
            }
        }
    };
}

codes! {
    /// The text is not TOML.
    Syntax = "TF0101",
    /// There is no such key or table.
    UnknownKey = "TF0102",
    /// A value is of another type than its key wants.
    WrongType = "TF0103",
    /// A required key or table is missing.
    Missing = "TF0104",
    /// A duration is not a number with a unit.
    BadDuration = "TF0105",
    /// A size is not a number with a unit.
    BadSize = "TF0106",
    /// A value is outside the bounds of its key.
    OutOfRange = "TF0107",
    /// A value is not one of those that its key knows.
    BadChoice = "TF0108",
    /// A reference names neither one environment variable nor one file.
    BadReference = "TF0109",
    /// The environment variable or file of a reference cannot be read.
    Unresolved = "TF0110",
    /// The embedded broker is not part of this version.
    NoEmbeddedBroker = "TF0201",
    /// This version reads and writes JSON only.
    JsonOnly = "TF0202",
    /// This version has windows of a fixed size only, no calendar windows.
    NoCalendar = "TF0203",
    /// This version has no clearable namespaces.
    NoClear = "TF0204",
    /// A name cannot be used where it has to appear.
    BadName = "TF0301",
    /// Two names are the same, or too alike to be told apart.
    NameClash = "TF0302",
    /// A dimension is named like a field of our own rows.
    ReservedDimension = "TF0303",
    /// A stage reads from an input that has no table.
    UnknownInput = "TF0304",
    /// An input is read by no stage.
    UnreadInput = "TF0305",
    /// Two inputs read the same topic.
    SharedTopic = "TF0306",
    /// An input reads a topic that the app itself writes.
    OwnTopic = "TF0307",
    /// There are more tables or names than the engine supports.
    TooMany = "TF0308",
    /// Ids are forgotten while their copies can still be admitted.
    RememberTooShort = "TF0401",
    /// A window is not a whole number of slices.
    SliceMismatch = "TF0402",
    /// Grace is longer than events are accepted.
    GraceTooLong = "TF0403",
    /// Cells are dropped while events for them can still be admitted.
    KeepTooShort = "TF0404",
    /// The commit interval leaves a transaction too little time.
    CommitTooSlow = "TF0405",
    /// The longest delay between retries is shorter than the first one.
    CapBelowBase = "TF0406",
    /// A librdkafka property belongs to the engine.
    OwnedProperty = "TF0501",
    /// An address cannot be understood.
    BadAddress = "TF0502",
    /// A topic does not exist.
    TopicMissing = "TF0601",
    /// A topic has a wrong number of partitions.
    TopicPartitions = "TF0602",
    /// A topic's timestamps are of the wrong type.
    TopicTimestamps = "TF0603",
    /// A setting of a topic would lose or refuse data.
    TopicSetting = "TF0604",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
