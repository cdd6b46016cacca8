//! What a misspelled name was meant to be.

/// Comparing takes the product of two lengths, and nobody mistypes longer names.
const MAX_CHARS: usize = 40;

/// The one of some names that differs least from this one, if that is so little that it may be meant: by a letter in
/// three, or by capitals alone.
pub(crate) fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > MAX_CHARS {
        return None;
    }
    let most = length / 3;
    let near = names.filter(|other| *other != name && other.chars().count().abs_diff(length) <= most);
    let small = name.to_lowercase();
    let distances = near.map(|other| (strsim::damerau_levenshtein(&small, &other.to_lowercase()), other));
    distances.filter(|(distance, _)| *distance <= most).min().map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_meant_if_it_differs_little() {
        let names = ["agent", "parallel", "JSON", "log", "i"];
        for (name, meant) in [
            ("agents", Some("agent")),
            ("paralell", Some("parallel")),
            ("json", Some("JSON")),
            ("lgo", Some("log")),
            ("I", Some("i")),
            ("j", None),
            ("agent", None),
            ("lab", None),
            ("task", None),
            ("", None),
        ] {
            assert_eq!(closest(name, names.into_iter()), meant, "{name}");
        }
        assert_eq!(closest(&"a".repeat(41), ["a"].into_iter()), None);
    }
}
