//! Deliberately broken rules, where they are the driver's duty rather than `core`'s.

use dyad_core::dataset::Membership;
use dyad_core::ids::MemberId;

/// The rule that is broken, if any.
#[cfg(feature = "variants")]
pub type Variant = Option<dyad_core::broken::Broken>;
/// No rule can be broken in this build.
#[cfg(not(feature = "variants"))]
pub type Variant = Sound;

/// The rules as they ship.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sound;

/// No broken rule.
pub fn sound() -> Variant {
    Variant::default()
}

/// Whether this rule is broken.
macro_rules! breaks {
    ($variant:expr, $name:ident) => {{
        #[cfg(feature = "variants")]
        let broken = $variant == Some(dyad_core::broken::Broken::$name);
        #[cfg(not(feature = "variants"))]
        let broken = {
            let _: $crate::Variant = $variant;
            false
        };
        broken
    }};
}
pub(crate) use breaks;

/// V5: a reader that looks at one end of the tail only.
pub(crate) fn misread(
    variant: Variant,
    own: MemberId,
    prefixes: &mut Vec<Membership>,
    removal: &mut Option<bool>,
) {
    let tail = breaks!(variant, ClassFromTail);
    let mark = breaks!(variant, ClassFromCommitMark);
    if tail {
        prefixes.drain(..prefixes.len().saturating_sub(1));
    }
    if mark {
        prefixes.truncate(1);
    }
    if let Some(membership) = prefixes.first().filter(|_| tail != mark) {
        *removal = membership.is_removed(own).then_some(true);
    }
}

/// Carries the broken rule over to facts that were read back from JSON, which never holds it.
pub(crate) fn carry(from: &dyad_core::Facts, to: &mut dyad_core::Facts) {
    #[cfg(feature = "variants")]
    {
        to.broken = from.broken;
    }
    #[cfg(not(feature = "variants"))]
    let _ = (from, to);
}
