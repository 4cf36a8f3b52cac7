//! Names with U+0000, which a text of PostgreSQL cannot hold.
//!
//! U+0000 becomes U+0001 U+0001, and U+0001 becomes U+0001 U+0002: every name has one form, and forms
//! are in the order of their names.

use std::borrow::Cow;

/// The form of a name in the database.
pub fn encoded(name: &str) -> Cow<'_, str> {
    if !name.contains(['\0', '\u{1}']) {
        return Cow::Borrowed(name);
    }
    let escaped = name.replace('\u{1}', "\u{1}\u{2}");
    Cow::Owned(escaped.replace('\0', "\u{1}\u{1}"))
}

/// The name of a form.
pub fn plain(form: String) -> String {
    if !form.contains('\u{1}') {
        return form;
    }
    let mut name = String::with_capacity(form.len());
    let mut letters = form.chars();
    while let Some(letter) = letters.next() {
        name.push(match letter {
            '\u{1}' if letters.next() == Some('\u{1}') => '\0',
            other => other,
        });
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_unique_and_in_order() {
        let mut names = vec![String::new(), "é\u{10ffff}".to_owned()];
        let letters = ['\0', '\u{1}', '\u{2}', 'a'];
        for a in letters {
            names.push(a.to_string());
            for b in letters {
                names.push(format!("{a}{b}"));
                names.extend(letters.map(|c| format!("{a}{b}{c}")));
            }
        }
        names.sort_unstable();
        let forms: Vec<_> = names.iter().map(|name| encoded(name)).collect();
        assert!(forms.is_sorted_by(|a, b| a < b));
        for (name, form) in names.iter().zip(forms) {
            assert!(!form.contains('\0'));
            assert_eq!(&plain(form.into_owned()), name);
        }
    }
}
