//! Histories of whole transcripts.
