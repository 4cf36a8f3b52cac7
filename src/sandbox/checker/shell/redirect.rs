//! Redirections, and where the input of a command comes from.

use brush_parser::ast;

use super::read::{Place, Reader};
use super::{Redirect, RedirectKind, Stdin, Word};
use crate::sandbox::checker::inner;

impl Reader {
    pub(super) fn redirects_of(&mut self, redirects: Option<&ast::RedirectList>, place: &Place) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            if let Some(found) = self.redirect(redirect, place).0 {
                self.out.redirects.push((found, place.bases.clone()));
            }
        }
    }

    pub(super) fn redirect(
        &mut self,
        redirect: &ast::IoRedirect,
        place: &Place,
    ) -> (Option<Redirect>, Option<Stdin>) {
        match redirect {
            ast::IoRedirect::File(descriptor, kind, target) => {
                let found = self.file_redirect(kind, target, place);
                let is_stdin = descriptor.is_none_or(|number| number == 0)
                    && found.as_ref().is_some_and(is_plain_file);
                (found, is_stdin.then_some(Stdin::File))
            }
            ast::IoRedirect::HereDocument(_, document) => {
                let text = if document.requires_expansion {
                    self.here_document(&document.doc.value, place)
                } else {
                    Word::fixed(document.doc.value.clone())
                };
                (None, Some(Stdin::Text(text)))
            }
            ast::IoRedirect::HereString(_, word) => {
                self.not_posix(place);
                let text = self.word(&word.value, place);
                self.check_literal(&text);
                (None, Some(Stdin::Text(text)))
            }
            ast::IoRedirect::OutputAndError(word, _) => {
                self.not_posix(place);
                let target = self.target(&word.value, place);
                let kind = RedirectKind::Write;
                (Some(Redirect { kind, target }), None)
            }
        }
    }

    fn file_redirect(
        &mut self,
        kind: &ast::IoFileRedirectKind,
        target: &ast::IoFileRedirectTarget,
        place: &Place,
    ) -> Option<Redirect> {
        let word = match target {
            ast::IoFileRedirectTarget::Filename(word) => self.target(&word.value, place),
            ast::IoFileRedirectTarget::Duplicate(word) => {
                let target = self.target(&word.value, place);
                if target.literal().is_some_and(|text| is_duplicate(&text)) {
                    return None;
                }
                // `>& word` writes a file when the word is no number.
                target
            }
            ast::IoFileRedirectTarget::Fd(_) => return None,
            ast::IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.process_substitution(subshell, place);
                return None;
            }
        };
        let kind = match kind {
            ast::IoFileRedirectKind::Read => RedirectKind::Read,
            ast::IoFileRedirectKind::ReadAndWrite => RedirectKind::ReadWrite,
            ast::IoFileRedirectKind::Write
            | ast::IoFileRedirectKind::Append
            | ast::IoFileRedirectKind::Clobber
            | ast::IoFileRedirectKind::DuplicateInput
            | ast::IoFileRedirectKind::DuplicateOutput => RedirectKind::Write,
        };
        Some(Redirect { kind, target: word })
    }

    fn target(&mut self, raw: &str, place: &Place) -> Word {
        let word = self.word(raw, place);
        let shown = word.shown();
        let may_be_network =
            word.text().is_none() && (shown.contains("tcp/") || shown.contains("udp/"));
        if may_be_network || shown.contains("/dev/tcp/") || shown.contains("/dev/udp/") {
            self.refuse("unsafe_construct", "command opens a network redirection");
        }
        word
    }
}

/// Whether the input is a file, and no stream that something else writes into.
fn is_plain_file(redirect: &Redirect) -> bool {
    let text = redirect.target.literal();
    redirect.kind != RedirectKind::Write && text.is_some_and(|text| !inner::is_stream(&text))
}

fn is_duplicate(text: &str) -> bool {
    let number = text.strip_suffix('-').unwrap_or(text);
    number.bytes().all(|byte| byte.is_ascii_digit())
}
