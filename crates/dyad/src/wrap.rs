//! Text broken at a width.

/// Breaks a text at blanks so that no line is wider than `width`, if its words allow. Every line but the
/// first is indented; the first is taken to begin at the same column.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines keep to the width; a word that does not fit stands alone and whole.
    #[test]
    fn lines_keep_to_the_width() {
        assert_eq!(wrap("one two three", 9, 2), "one two\n  three");
        assert_eq!(
            wrap("https://a-very-long-address b", 10, 4),
            "https://a-very-long-address\n    b"
        );
        assert_eq!(wrap("", 10, 4), "");
    }
}
