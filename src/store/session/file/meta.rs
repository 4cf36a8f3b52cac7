//! `meta.json`: what is known of a session beside its entries.

use serde_json::json;

use super::super::{Registration, SessionRow, Summary};
use super::side;
use crate::base::clock::parse_timestamp;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, JsonMap};
use crate::store::disk::Folder;

pub const NAME: &str = "meta.json";
/// Of the form that is written here.
const VERSION: u64 = 1;

/// Members of a document that are made anew for each.
pub const OF_ALL_DOCUMENTS: [&str; 5] =
    ["id", "createdAt", "updatedAt", "messageCount", "fileSize"];

/// The content of the file. Members that are not known are kept.
#[derive(Debug, Default)]
pub struct Meta {
    fields: JsonMap,
    /// Whether a file is there.
    exists: bool,
    /// Why the file could not be read.
    damage: Option<&'static str>,
}

impl Meta {
    /// The file of a session's folder, which must be that of the session.
    pub fn read(folder: &Folder, project: &str, session: &str) -> Result<Self> {
        let meta = Self::read_any(folder)?;
        meta.check(project, session)?;
        Ok(meta)
    }

    /// The file of whatever session a folder is of.
    pub fn read_any(folder: &Folder) -> Result<Self> {
        let Some(content) = folder.read(NAME)? else {
            return Ok(Self::default());
        };
        let mut meta = Self {
            exists: true,
            ..Self::default()
        };
        match serde_json::from_slice(&content) {
            Ok(Json::Object(fields)) => meta.fields = fields,
            _ => {
                meta.damage =
                    Some("what is known of the session beside its entries cannot be read");
            }
        }
        if meta
            .number("version")
            .is_some_and(|version| version > VERSION)
        {
            meta.damage = Some("the session was written by a newer version of the kernel");
        }
        Ok(meta)
    }

    /// A file name is a digest or what a file system made of it: the id inside decides. A folder
    /// without a project is that of a string id, which a key may name too.
    fn check(&self, project: &str, session: &str) -> Result<()> {
        let differs =
            |key: &str, expected: &str| self.text(key).is_some_and(|found| found != expected);
        let is_of_other_project = differs("project", project) && differs("project", "");
        if differs("id", session) || is_of_other_project {
            return Err(KernelError::new(
                ErrorKind::SessionIdConflict,
                "the place of the session is taken by one whose id differs: choose another id",
            ));
        }
        Ok(())
    }

    pub fn exists(&self) -> bool {
        self.exists
    }

    pub fn damage(&self) -> Option<&'static str> {
        self.damage
    }

    /// Writes the file. One that could not be read is kept beside it.
    pub fn write(&mut self, folder: &Folder, sync: bool) -> Result<()> {
        if self
            .number("version")
            .is_some_and(|version| version > VERSION)
        {
            return Err(KernelError::new(
                ErrorKind::Store,
                "the session was written by a newer version of the kernel: update this one",
            )
            .with_retryable(false));
        }
        if self.damage.take().is_some() {
            side::set_aside(folder, NAME, "meta.damaged-")?;
        }
        self.set("version", json!(VERSION));
        let content = serde_json::to_vec_pretty(&self.fields)
            .map_err(|error| KernelError::new(ErrorKind::SerializeFailed, error.to_string()))?;
        folder.write(NAME, &content, sync)?;
        self.exists = true;
        Ok(())
    }

    /// Names the session that the folder is of.
    pub fn name(&mut self, project: &str, session: &str) {
        self.set("id", json!(session));
        if !self.fields.contains_key("project") {
            self.set("project", json!(project));
        }
    }

    pub fn id(&self) -> Option<&str> {
        self.text("id")
    }

    pub fn project(&self) -> Option<&str> {
        self.text("project")
    }

    pub fn is_registered(&self) -> bool {
        self.fields.get("registered") == Some(&Json::Bool(true))
    }

    /// What the registration says; what is missing there stays.
    pub fn register(&mut self, registration: &Registration, now: u64) {
        let texts = [
            ("user", &registration.user),
            ("title", &registration.title),
            ("parent", &registration.parent),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                self.set(key, json!(value));
            }
        }
        if let Some(metadata) = &registration.metadata {
            self.set("metadata", metadata.clone());
        }
        self.set("registered", json!(true));
        self.create(now);
        self.set("updatedAt", json!(now));
    }

    /// Stamps the begin of the session, once.
    pub fn create(&mut self, now: u64) {
        if self.created_at().is_none() {
            self.set("createdAt", json!(now));
        }
    }

    pub fn created_at(&self) -> Option<u64> {
        self.number("createdAt")
    }

    pub fn updated_at(&self) -> Option<u64> {
        self.number("updatedAt")
    }

    pub fn hidden_through(&self) -> u64 {
        self.number("hiddenThrough").unwrap_or_default()
    }

    pub fn hide_through(&mut self, seq: u64) {
        self.set("hiddenThrough", json!(seq.max(self.hidden_through())));
    }

    pub fn summary(&self) -> Summary {
        let fields = self.fields.get("summary").and_then(Json::as_object);
        Summary(fields.cloned().unwrap_or_default())
    }

    pub fn set_summary(&mut self, summary: &Summary) {
        self.set("summary", json!(summary.0));
    }

    /// What the transcript document says of the session and nothing else holds.
    pub fn document(&self) -> JsonMap {
        let fields = self.fields.get("document").and_then(Json::as_object);
        fields.cloned().unwrap_or_default()
    }

    pub fn set_document(&mut self, fields: JsonMap) {
        self.set("document", Json::Object(fields));
    }

    /// Takes over what a transcript document says of a session that has nothing else.
    pub fn adopt(&mut self, metadata: &JsonMap) {
        let time = |key| {
            metadata
                .get(key)
                .and_then(Json::as_str)
                .and_then(parse_timestamp)
        };
        for key in ["createdAt", "updatedAt"] {
            if let Some(ms) = time(key).filter(|_| self.number(key).is_none()) {
                self.set(key, json!(ms));
            }
        }
        let mut fields = self.document();
        for (key, value) in metadata {
            if !OF_ALL_DOCUMENTS.contains(&key.as_str()) && !fields.contains_key(key) {
                fields.insert(key.clone(), value.clone());
            }
        }
        self.set_document(fields);
    }

    pub fn set_parent(&mut self, parent: &str) {
        self.set("parent", json!(parent));
    }

    /// The row of the session, with the summary as it was written last.
    pub fn row(&self, session: &str) -> SessionRow {
        let owned = |key| self.text(key).map(str::to_owned);
        SessionRow {
            session: session.to_owned(),
            user: owned("user"),
            title: owned("title").or_else(|| self.title_of_document()),
            metadata: self.fields.get("metadata").cloned(),
            parent: owned("parent"),
            summary: self.summary(),
            created_at: self.created_at().unwrap_or_default(),
            updated_at: self.updated_at().unwrap_or_default(),
        }
    }

    fn title_of_document(&self) -> Option<String> {
        let title = self.fields.get("document")?.get("summary")?.as_str()?;
        Some(title.to_owned())
    }

    fn set(&mut self, key: &str, value: Json) {
        self.fields.insert(key.to_owned(), value);
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key)?.as_str()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.fields.get(key)?.as_u64()
    }
}
