//! The statements that both databases understand. `{p}` stands for the prefix of the tables.
//!
//! Parameters are numbered in order of their first appearance: SQLite takes `$1` for a name and
//! numbers names by itself.

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        $($(#[$doc])* pub const $name: &str = $text;)+

        /// Every statement and its name.
        #[cfg(test)]
        pub const ALL: &[(&str, &str)] = &[$((stringify!($name), $text),)+];
    };
}

statements! {
    /// Makes the row of a session unless there is one, and keeps other writers from it until the end
    /// of the transaction.
    LOCK_SESSION = r#"INSERT INTO "{p}sessions" (project, session) VALUES ($1, $2)
        ON CONFLICT (project, session) DO UPDATE SET fence = "{p}sessions".fence
        RETURNING fence, summary"#;
    /// The same for a session that may not exist.
    LOCK_EXISTING = r#"UPDATE "{p}sessions" SET fence = fence WHERE project = $1 AND session = $2"#;
    SET_FENCE = r#"UPDATE "{p}sessions" SET fence = $1 WHERE project = $2 AND session = $3"#;
    HIDE_THROUGH = r#"UPDATE "{p}sessions" SET hidden_through = $1
        WHERE project = $2 AND session = $3 AND hidden_through < $1"#;
    TOUCH_SESSION = r#"UPDATE "{p}sessions"
        SET summary = $1, updated_at = $2, created_at = COALESCE(created_at, $2)
        WHERE project = $3 AND session = $4"#;
    REGISTER = r#"UPDATE "{p}sessions"
        SET user_id = COALESCE($1, user_id), title = COALESCE($2, title),
            metadata = COALESCE($3, metadata), parent = COALESCE($4, parent),
            updated_at = $5, created_at = COALESCE(created_at, $5)
        WHERE project = $6 AND session = $7"#;
    GET_SESSION = r#"SELECT session, user_id, title, metadata, parent, summary, created_at, updated_at
        FROM "{p}sessions" WHERE project = $1 AND session = $2 AND created_at IS NOT NULL"#;
    LIST_SESSIONS = r#"SELECT
            session, user_id, title, metadata, parent, summary, created_at, updated_at
        FROM "{p}sessions" WHERE project = $1 AND (updated_at, session) < ($2, $3)
        ORDER BY updated_at DESC, session DESC LIMIT $4"#;
    LIST_SESSIONS_OF_USER = r#"SELECT
            session, user_id, title, metadata, parent, summary, created_at, updated_at
        FROM "{p}sessions" WHERE project = $1 AND user_id = $2 AND (updated_at, session) < ($3, $4)
        ORDER BY updated_at DESC, session DESC LIMIT $5"#;

    FIND_TRANSCRIPT = r#"SELECT id, last_seq, entries FROM "{p}session_transcripts"
        WHERE project = $1 AND session = $2 AND slot = $3"#;
    MAKE_TRANSCRIPT = r#"INSERT INTO "{p}session_transcripts" (project, session, slot)
        VALUES ($1, $2, $3) RETURNING id, last_seq, entries"#;
    GROW_TRANSCRIPT = r#"UPDATE "{p}session_transcripts"
        SET last_seq = $1, entries = entries + $2 WHERE id = $3"#;
    SUBKEYS = r#"SELECT slot FROM "{p}session_transcripts"
        WHERE project = $1 AND session = $2 AND slot <> '' ORDER BY slot"#;
    REPLACE_ENTRY = r#"UPDATE "{p}session_entries" SET body = $1
        WHERE transcript = $2 AND uuid = $3"#;
    LOAD = r#"SELECT seq, body FROM "{p}session_entries"
        WHERE transcript = $1 AND seq > $2 ORDER BY seq LIMIT $3"#;
    TAIL = r#"SELECT seq, body FROM "{p}session_entries"
        WHERE transcript = $1 ORDER BY seq DESC LIMIT $2"#;
    INDEX = r#"SELECT seq, message_id, role, created_at FROM "{p}session_messages"
        WHERE transcript = (SELECT id FROM "{p}session_transcripts"
                WHERE project = $1 AND session = $2 AND slot = '')
            AND seq > COALESCE((SELECT hidden_through FROM "{p}sessions"
                WHERE project = $1 AND session = $2), 0)
            AND seq < $3
        ORDER BY seq DESC LIMIT $4"#;

    DELETE_SESSION = r#"DELETE FROM "{p}sessions" WHERE project = $1 AND session = $2"#;
    TRANSCRIPTS_OF = r#"SELECT id FROM "{p}session_transcripts"
        WHERE project = $1 AND session = $2"#;
    DELETE_TRANSCRIPT = r#"DELETE FROM "{p}session_transcripts" WHERE id = $1"#;
    DELETE_ENTRIES = r#"DELETE FROM "{p}session_entries" WHERE transcript = $1"#;
    DELETE_MESSAGES = r#"DELETE FROM "{p}session_messages" WHERE transcript = $1"#;

    GET_STATE = r#"SELECT name, conversation, user_id, version, data, expires_at FROM "{p}state"
        WHERE project = $1 AND kind = $2 AND name = $3"#;
    INSERT_STATE = r#"INSERT INTO "{p}state"
        (project, kind, name, conversation, user_id, version, data, expires_at)
        VALUES ($1, $2, $3, $4, $5, 1, $6, $7) ON CONFLICT (project, kind, name) DO NOTHING"#;
    SWAP_STATE = r#"UPDATE "{p}state"
        SET conversation = $1, user_id = $2, data = $3, expires_at = $4, version = version + 1
        WHERE project = $5 AND kind = $6 AND name = $7 AND version = $8"#;
    REMOVE_STATE = r#"DELETE FROM "{p}state" WHERE project = $1 AND kind = $2 AND name = $3
        AND version = COALESCE($4, version) RETURNING version"#;
    LIST_STATE = r#"SELECT name, conversation, user_id, version, data, expires_at FROM "{p}state"
        WHERE project = $1 AND kind = $2 AND name >= $3 ORDER BY name LIMIT $4"#;
    LIST_STATE_OF_CONVERSATION = r#"SELECT name, conversation, user_id, version, data, expires_at
        FROM "{p}state"
        WHERE project = $1 AND kind = $2 AND name >= $3 AND conversation = $4
        ORDER BY name LIMIT $5"#;
    FORGET_STATE = r#"DELETE FROM "{p}state" WHERE project = $1 AND conversation = $2"#;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_first_appear_in_order() {
        for (name, text) in ALL {
            let mut highest = 0;
            for part in text.split('$').skip(1) {
                let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
                let number: usize = digits.parse().unwrap();
                assert!(number <= highest + 1, "{name}: ${number} comes too early");
                highest = highest.max(number);
            }
        }
    }
}
