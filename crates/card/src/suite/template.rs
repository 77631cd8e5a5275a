//! The text of an APDU in a suite: hexadecimal with names in braces.
//!
//! `80 20 {length:2}` is two bytes and a number of two; `{buffer}` is a value as it is.

use thiserror::Error;

use super::job::Piece;

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum BadTemplate {
    /// Something that is neither hexadecimal nor a name in braces.
    #[error("\"{0}\" is neither hexadecimal nor a name in braces")]
    Word(String),
    /// A brace without its other half.
    #[error("a brace is not closed")]
    Brace,
    /// A width that is no number from 1 to 4.
    #[error("the width in \"{{{0}}}\" is not a number from 1 to 4")]
    Width(String),
}

/// Reads a text with placeholders such as `{input}` into its pieces.
pub(super) fn parse(text: &str) -> Result<Vec<Piece>, BadTemplate> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let piece;
        (piece, rest) = match rest.strip_prefix('{') {
            Some(inside) => {
                let (name, after) = inside.split_once('}').ok_or(BadTemplate::Brace)?;
                (named(name)?, after)
            }
            None => {
                let end = rest.find('{').unwrap_or(rest.len());
                let (bytes, after) = rest.split_at(end);
                (Piece::Bytes(hexadecimal(bytes)?), after)
            }
        };
        pieces.push(piece);
        rest = rest.trim_start();
    }
    Ok(pieces)
}

fn named(text: &str) -> Result<Piece, BadTemplate> {
    let Some((name, width)) = text.split_once(':') else {
        return Ok(Piece::Value(text.trim().to_owned()));
    };
    match width.trim().parse() {
        Ok(width @ 1..=4) => Ok(Piece::Number { name: name.trim().to_owned(), width }),
        _ => Err(BadTemplate::Width(text.to_owned())),
    }
}

/// Bytes in hexadecimal, with blanks wherever they help.
pub(super) fn hexadecimal(text: &str) -> Result<Vec<u8>, BadTemplate> {
    let digits: String = text.split_whitespace().collect();
    hex::decode(&digits).map_err(|_| BadTemplate::Word(text.trim().to_owned()))
}

/// How many bytes of a header a template makes, where saved values count as one byte each.
pub(super) fn header_bytes(pieces: &[Piece]) -> usize {
    let bytes = |piece: &Piece| match piece {
        Piece::Bytes(bytes) => bytes.len(),
        Piece::Value(_) => 1,
        Piece::Number { width, .. } => usize::from(*width),
    };
    pieces.iter().map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_and_names_mix() {
        let pieces = parse("80 24 {buffer} {chunk:1} 00ff").unwrap();
        let value = Piece::Value("buffer".into());
        let number = Piece::Number { name: "chunk".into(), width: 1 };
        let bytes = |bytes: &[u8]| Piece::Bytes(bytes.to_vec());
        assert_eq!(pieces, [bytes(&[0x80, 0x24]), value, number, bytes(&[0, 0xFF])]);
        assert_eq!(header_bytes(&pieces), 6);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        assert_eq!(parse("80 2"), Err(BadTemplate::Word("80 2".into())));
        assert_eq!(parse("80 {x"), Err(BadTemplate::Brace));
        assert_eq!(parse("{x:9}"), Err(BadTemplate::Width("x:9".into())));
    }
}
