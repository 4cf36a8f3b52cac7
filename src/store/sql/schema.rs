//! The tables, as statements that make them.

/// The version of the tables that this kernel reads and writes.
pub const VERSION: i64 = 1;

/// What differs between databases in the words of a table.
pub struct Dialect {
    /// A text that is compared byte for byte.
    pub text: &'static str,
    /// A number that the database gives to each row.
    pub id: &'static str,
}

/// From no tables to version 1. They fail when a table of somebody else has the name.
const FIRST: [&str; 12] = [
    r#"CREATE TABLE "{p}meta" (name {text} PRIMARY KEY, value {text} NOT NULL)"#,
    // `created_at` and `updated_at` are missing until the session is listed.
    r#"CREATE TABLE "{p}sessions" (
        project {text} NOT NULL, session {text} NOT NULL,
        user_id {text}, title {text}, metadata {text}, parent {text},
        summary {text} NOT NULL DEFAULT '{}',
        fence BIGINT NOT NULL DEFAULT 0, hidden_through BIGINT NOT NULL DEFAULT 0,
        created_at BIGINT, updated_at BIGINT,
        PRIMARY KEY (project, session))"#,
    r#"CREATE INDEX "{p}sessions_by_time" ON "{p}sessions" (project, updated_at, session)"#,
    r#"CREATE INDEX "{p}sessions_by_user"
        ON "{p}sessions" (project, user_id, updated_at, session)"#,
    r#"CREATE TABLE "{p}session_transcripts" (
        id {id}, project {text} NOT NULL, session {text} NOT NULL, slot {text} NOT NULL,
        last_seq BIGINT NOT NULL DEFAULT 0, entries BIGINT NOT NULL DEFAULT 0,
        UNIQUE (project, session, slot))"#,
    r#"CREATE TABLE "{p}session_entries" (
        transcript BIGINT NOT NULL, seq BIGINT NOT NULL,
        uuid {text}, message_id {text}, body {text} NOT NULL,
        PRIMARY KEY (transcript, seq))"#,
    r#"CREATE UNIQUE INDEX "{p}entries_by_uuid"
        ON "{p}session_entries" (transcript, uuid) WHERE uuid IS NOT NULL"#,
    r#"CREATE INDEX "{p}entries_by_message"
        ON "{p}session_entries" (transcript, message_id, seq) WHERE message_id IS NOT NULL"#,
    r#"CREATE TABLE "{p}session_messages" (
        transcript BIGINT NOT NULL, seq BIGINT NOT NULL,
        message_id {text} NOT NULL, role {text} NOT NULL, created_at BIGINT NOT NULL,
        PRIMARY KEY (transcript, seq), UNIQUE (transcript, message_id))"#,
    r#"CREATE TABLE "{p}state" (
        project {text} NOT NULL, kind {text} NOT NULL, name {text} NOT NULL,
        conversation {text}, user_id {text}, version BIGINT NOT NULL,
        data {text} NOT NULL, expires_at BIGINT,
        PRIMARY KEY (project, kind, name))"#,
    r#"CREATE INDEX "{p}state_by_conversation" ON "{p}state" (project, conversation)"#,
    r#"INSERT INTO "{p}meta" (name, value) VALUES ('schema', '1')"#,
];

/// The version that is there, once the table `meta` exists.
pub const READ_VERSION: &str = r#"SELECT value FROM "{p}meta" WHERE name = 'schema'"#;

/// The statements that bring tables of a version to [`VERSION`].
pub fn migration(from: i64, dialect: &Dialect) -> Vec<String> {
    let steps: &[&str] = if from == 0 { &FIRST } else { &[] };
    let words = |step: &&str| {
        step.replace("{text}", dialect.text)
            .replace("{id}", dialect.id)
    };
    steps.iter().map(words).collect()
}
