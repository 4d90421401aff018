//! The one table of Kafka's errors: code × context → reaction, and a sentence for people.
//!
//! librdkafka returns errors of transaction calls with three flags (retriable, requires abort, fatal). They win over
//! the table, for librdkafka knows the state of the transaction; only where nothing could ever get better does a
//! fatal error halt the worker instead of costing it its producer.
//!
//! | class | transaction | produce | consumer | admin |
//! | --- | --- | --- | --- | --- |
//! | waiting: broker away, leader moves, time out, queue full | Retry | Retry | Retry | Retry |
//! | member: not a member of this generation any more | Abort | Abort | Abort | Halt |
//! | fenced: the producer is unusable | Fenced | Fenced | Halt | Halt |
//! | undelivered: a record was not written | Abort | Abort | Halt | Retry |
//! | missing: topic or partition is not there | Abort | Abort | Retry | Retry |
//! | permission, credentials | Halt | Abort | Retry | Halt |
//! | lost: the offset is not in the log | Halt | Halt | Halt | Halt |
//! | large, setting, unsupported, corrupt, broken | Halt | Halt | Halt | Halt |
//!
//! Keeps: EO-2 (a fenced or stale worker never goes on). Must not know: who called.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tallyflow_runtime::ports::{PortError, Reaction};

use crate::native::NativeError;

/// What was being done when the error came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// A call of the transactional producer: begin, offsets, commit, abort, open.
    Transaction,
    /// Handing a record to a producer, or its delivery.
    Produce,
    /// A consumer: fetching, seeking, the group.
    Consumer,
    /// A question to the cluster, or a change of it.
    Admin,
}

/// Codes that mean the same to the engine and to people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Waiting,
    Member,
    Fenced,
    Undelivered,
    Missing,
    Permission,
    Credentials,
    Lost,
    Large,
    Setting,
    Unsupported,
    Corrupt,
    Broken,
    /// Not in the table: a code that a newer librdkafka invented.
    Unlisted,
}

impl Class {
    /// The table.
    #[rustfmt::skip]
    pub(crate) const fn reaction(self, context: Context) -> Reaction {
        use Context::{Admin, Consumer, Produce, Transaction};
        match (self, context) {
            (Self::Waiting, _) => Reaction::Retry,
            (Self::Member, Transaction | Produce | Consumer) => Reaction::Abort,
            (Self::Fenced, Transaction | Produce) => Reaction::Fenced,
            (Self::Undelivered, Transaction | Produce) => Reaction::Abort,
            (Self::Undelivered, Admin) => Reaction::Retry,
            (Self::Missing, Transaction | Produce) => Reaction::Abort,
            (Self::Missing, Consumer | Admin) => Reaction::Retry,
            (Self::Permission | Self::Credentials, Produce) => Reaction::Abort,
            (Self::Permission | Self::Credentials, Consumer) => Reaction::Retry,
            _ => Reaction::Halt,
        }
    }

    /// Whether a fatal error of this class would only come again with a new producer.
    const fn is_hopeless(self) -> bool {
        matches!(self, Self::Permission | Self::Setting | Self::Unsupported | Self::Large)
    }

    /// What it means and what to do, for people.
    const fn sentence(self) -> &'static str {
        match self {
            Self::Waiting => "the brokers did not do it in time; trying again",
            Self::Member => "the group has given the partitions to somebody else",
            Self::Fenced => {
                "another worker has taken over the transactional id, or the transaction timed out"
            }
            Self::Undelivered => "a record was not written; the transaction is repeated",
            Self::Missing => {
                "the topic or partition does not exist; create it with `tallyflow topics --execute`"
            }
            Self::Permission => "the brokers do not permit it; grant it to this client",
            Self::Credentials => "the brokers do not accept the credentials; see [kafka.client]",
            Self::Lost => "the offset is not in the log any more",
            Self::Large => "a record is larger than the topic or the broker allows; raise max.message.bytes",
            Self::Setting => "the brokers refuse a setting",
            Self::Unsupported => "the brokers are too old for it, or this client is",
            Self::Corrupt => "the brokers sent or refused a damaged record",
            Self::Broken => "this must not happen; please report it",
            Self::Unlisted => "an error this version does not know",
        }
    }
}

/// The class of a code. Every code of librdkafka 2.12 stands here.
#[rustfmt::skip]
pub(crate) const fn class(code: RDKafkaErrorCode) -> Class {
    use RDKafkaErrorCode as C;
    match code {
        C::NoError | C::Noop | C::PartitionEOF | C::Partial => Class::Waiting,
        C::BrokerDestroy | C::DestroyBroker | C::BrokerTransportFailure | C::Resolve
        | C::AllBrokersDown | C::CriticalSystemResource | C::OperationTimedOut | C::QueueFull
        | C::NodeUpdate | C::WaitingForCoordinator | C::InProgress | C::PreviousInProgress
        | C::NoEnt | C::Retry | C::TimedOutQueue | C::WaitCache | C::Interrupted
        | C::UnknownBroker | C::Outdated | C::LeaderNotAvailable | C::NotLeaderForPartition
        | C::RequestTimedOut | C::BrokerNotAvailable | C::ReplicaNotAvailable
        | C::StaleControllerEpoch | C::NetworkException | C::CoordinatorLoadInProgress
        | C::CoordinatorNotAvailable | C::NotCoordinator | C::NotController
        | C::ConcurrentTransactions | C::KafkaStorageError | C::ReassignmentInProgress
        | C::FetchSessionIdNotFound | C::InvalidFetchSessionEpoch | C::ListenerNotFound
        | C::FencedLeaderEpoch | C::UnknownLeaderEpoch | C::StaleBrokerEpoch
        | C::OffsetNotAvailable | C::PreferredLeaderNotAvailable | C::EligibleLeadersNotAvailable
        | C::ElectionNotNeeded | C::NoReassignmentInProgress | C::UnstableOffsetCommit
        | C::ThrottlingQuotaExceeded | C::MemberIdRequired | C::RebootstrapRequired
        | C::OperationNotAttempted | C::ISRInsufficient | C::UnknownSubscriptionId
        | C::TelemetryTooLarge => Class::Waiting,
        C::IllegalGeneration | C::UnknownMemberId | C::RebalanceInProgress | C::AssignmentLost
        | C::PollExceeded | C::AssignPartitions | C::RevokePartitions | C::FencedMemberEpoch
        | C::StaleMemberEpoch | C::FencedInstanceId | C::UnreleasedInstanceId => Class::Member,
        C::Fenced | C::Fatal | C::ProducerFenced | C::InvalidProducerEpoch
        | C::InvalidProducerIdMapping | C::InvalidTransactionalState
        | C::TransactionCoordinatorFenced | C::UnknownProducerId | C::OutOfOrderSequenceNumber
        | C::DuplicateSequenceNumber | C::GaplessGuarantee | C::Inconsistent => Class::Fenced,
        C::MessageTimedOut | C::PurgeQueue | C::PurgeInflight | C::NotEnoughReplicas
        | C::NotEnoughReplicasAfterAppend | C::InvalidDifferentRecord => Class::Undelivered,
        C::UnknownPartition | C::UnknownTopic | C::UnknownTopicOrPartition | C::UnknownTopicId
        | C::UnknownGroup | C::GroupIdNotFound => Class::Missing,
        C::TopicAuthorizationFailed | C::GroupAuthorizationFailed | C::ClusterAuthorizationFailed
        | C::TransactionalIdAuthorizationFailed | C::DelegationTokenAuthorizationFailed
        | C::SecurityDisabled | C::TopicDeletionDisabled => Class::Permission,
        C::SSL | C::Authentication | C::UnsupportedSASLMechanism | C::IllegalSASLState
        | C::SaslAuthenticationFailed | C::DelegationTokenAuthDisabled
        | C::DelegationTokenNotFound | C::DelegationTokenOwnerMismatch
        | C::DelegationTokenRequestNotAllowed | C::DelegationTokenExpired
        | C::InvalidPrincipalType | C::PrincipalDeserializationFailure
        | C::UnacceptableCredential => Class::Credentials,
        C::OffsetOutOfRange | C::AutoOffsetReset | C::NoOffset | C::LogTruncation => Class::Lost,
        C::MessageSizeTooLarge | C::MessageBatchTooLarge | C::InvalidMessageSize
        | C::OffsetMetadataTooLarge | C::InvalidCommitOffsetSize => Class::Large,
        C::InvalidArgument | C::NotConfigured | C::InvalidTopic | C::InvalidRequiredAcks
        | C::InconsistentGroupProtocol | C::InvalidGroupId | C::InvalidSessionTimeout
        | C::TopicAlreadyExists | C::InvalidPartitions | C::InvalidReplicationFactor
        | C::InvalidReplicaAssignment | C::InvalidConfig | C::PolicyViolation
        | C::InvalidTransactionTimeout | C::GroupMaxSizeReached | C::LogDirNotFound
        | C::UnsupportedAssignor | C::NonEmptyGroup | C::GroupSubscribedToTopic => Class::Setting,
        C::UnknownProtocol | C::NotImplemented | C::UnsupportedFeature | C::UnsupportedVersion
        | C::UnsupportedForMessageFormat | C::UnsupportedCompressionType => Class::Unsupported,
        C::BadMessage | C::BadCompression | C::InvalidMessage | C::InvalidRecord
        | C::InvalidTimestamp | C::Underflow => Class::Corrupt,
        C::Fail | C::FileSystem | C::ExistingSubscription | C::Conflict | C::State
        | C::KeySerialization | C::ValueSerialization | C::KeyDeserialization
        | C::ValueDeserialization | C::ReadOnly | C::InvalidType | C::Application | C::Unknown
        | C::InvalidRequest | C::ResourceNotFound | C::DuplicateResource
        | C::InconsistentVoterSet | C::InvalidUpdateVersion | C::FeatureUpdateFailed => Class::Broken,
        _ => Class::Unlisted,
    }
}

/// The reaction to a code that came without flags.
pub(crate) const fn reaction(code: RDKafkaErrorCode, context: Context) -> Reaction {
    class(code).reaction(context)
}

/// The reaction to an error of a native call: its flags, then the table.
pub(crate) const fn judge(error: &NativeError, context: Context) -> Reaction {
    let class = class(error.code);
    if error.fatal {
        return match context {
            Context::Transaction | Context::Produce if !class.is_hopeless() => Reaction::Fenced,
            _ => Reaction::Halt,
        };
    }
    if error.retriable {
        return Reaction::Retry;
    }
    if error.requires_abort {
        return Reaction::Abort;
    }
    class.reaction(context)
}

/// An error of a native call, as the engine wants it. `what` is what was being done.
pub(crate) fn port_error(what: &str, error: &NativeError, context: Context) -> PortError {
    PortError::new(judge(error, context), describe(what, error.code, &error.text))
}

/// An error of rdkafka's own calls, as the engine wants it.
pub(crate) fn from_kafka(what: &str, error: &KafkaError, context: Context) -> PortError {
    match error.rdkafka_error_code() {
        Some(code) => PortError::new(reaction(code, context), describe(what, code, "")),
        // The property's value is part of rdkafka's text and may be a secret.
        None => PortError::new(
            Reaction::Halt,
            match error {
                KafkaError::ClientConfig(_, _, property, _) => {
                    format!("{what}: librdkafka refuses the property {property}")
                }
                _ => format!("{what}: {error}"),
            },
        ),
    }
}

/// One line: what was being done, what it means, librdkafka's name and words.
pub(crate) fn describe(what: &str, code: RDKafkaErrorCode, text: &str) -> String {
    let sentence = class(code).sentence();
    let text = text.trim().trim_end_matches('.');
    if text.is_empty() {
        format!("{what}: {sentence} ({code:?})")
    } else {
        format!("{what}: {sentence} ({code:?}: {text})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::types::RDKafkaRespErr;

    const CONTEXTS: [Context; 4] =
        [Context::Transaction, Context::Produce, Context::Consumer, Context::Admin];

    /// Every code that this librdkafka has a name for, without the marks of its ranges.
    fn codes() -> Vec<RDKafkaErrorCode> {
        (-200..=200)
            .filter_map(|raw| RDKafkaRespErr::try_from(raw).ok())
            .map(RDKafkaErrorCode::from)
            .filter(|code| {
                !matches!(code, RDKafkaErrorCode::Begin | RDKafkaErrorCode::End | RDKafkaErrorCode::EndAll)
            })
            .collect()
    }

    #[test]
    fn every_code_stands_in_the_table() {
        let codes = codes();
        assert!(codes.len() > 160, "{}", codes.len());
        for code in codes {
            assert_ne!(class(code), Class::Unlisted, "{code:?}");
            for context in CONTEXTS {
                let text = describe("committing", code, "why");
                assert!(!text.ends_with('.') && !text.contains('\n'), "{context:?} {text}");
            }
        }
    }

    #[test]
    fn flags_win_over_the_table() {
        let error = |fatal, retriable, requires_abort| NativeError {
            code: RDKafkaErrorCode::IllegalGeneration,
            text: String::new(),
            fatal,
            retriable,
            requires_abort,
        };
        let judge = |error: NativeError| judge(&error, Context::Transaction);
        assert_eq!(judge(error(true, false, false)), Reaction::Fenced);
        assert_eq!(judge(error(false, true, false)), Reaction::Retry);
        assert_eq!(judge(error(false, false, true)), Reaction::Abort);
        assert_eq!(judge(error(false, false, false)), Reaction::Abort);
    }

    #[test]
    fn a_fatal_error_that_would_come_again_halts() {
        for (code, expected) in [
            (RDKafkaErrorCode::TransactionalIdAuthorizationFailed, Reaction::Halt),
            (RDKafkaErrorCode::InvalidTransactionTimeout, Reaction::Halt),
            (RDKafkaErrorCode::Fenced, Reaction::Fenced),
            (RDKafkaErrorCode::InvalidTransactionalState, Reaction::Fenced),
        ] {
            let error = NativeError {
                code,
                text: String::new(),
                fatal: true,
                retriable: false,
                requires_abort: false,
            };
            assert_eq!(judge(&error, Context::Transaction), expected, "{code:?}");
            assert_eq!(judge(&error, Context::Consumer), Reaction::Halt, "{code:?}");
        }
    }

    #[test]
    fn the_cases_that_matter() {
        use RDKafkaErrorCode as C;
        for (code, context, expected) in [
            (C::QueueFull, Context::Produce, Reaction::Retry),
            (C::ProducerFenced, Context::Transaction, Reaction::Fenced),
            (C::InvalidProducerEpoch, Context::Produce, Reaction::Fenced),
            (C::UnknownMemberId, Context::Transaction, Reaction::Abort),
            (C::MessageTimedOut, Context::Transaction, Reaction::Abort),
            (C::OperationTimedOut, Context::Transaction, Reaction::Retry),
            (C::AllBrokersDown, Context::Consumer, Reaction::Retry),
            (C::AutoOffsetReset, Context::Consumer, Reaction::Halt),
            (C::MessageSizeTooLarge, Context::Produce, Reaction::Halt),
            (C::TopicAuthorizationFailed, Context::Consumer, Reaction::Retry),
            (C::TopicAuthorizationFailed, Context::Admin, Reaction::Halt),
            (C::UnknownTopicOrPartition, Context::Admin, Reaction::Retry),
        ] {
            assert_eq!(reaction(code, context), expected, "{code:?} {context:?}");
        }
    }

    #[test]
    fn no_reaction_but_retry_and_halt_for_questions() {
        for code in codes() {
            assert!(matches!(reaction(code, Context::Admin), Reaction::Retry | Reaction::Halt));
        }
    }

    #[test]
    fn configuration_errors_keep_the_value_to_themselves() {
        let error = rdkafka::ClientConfig::new()
            .set("security.protocol", "hunter2")
            .create_native_config()
            .err()
            .unwrap();
        let text = from_kafka("making a client", &error, Context::Admin).message;
        assert!(!text.contains("hunter2"), "{text}");
    }
}
