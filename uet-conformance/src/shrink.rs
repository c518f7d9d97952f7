//! Shrinks a failing list of steps.

/// Removes steps while the failure stays: pieces of half of them first, single ones last.
///
/// ```
/// use uet_conformance::fewer_steps;
///
/// let both = |numbers: &Vec<u32>| numbers.contains(&7) && numbers.contains(&80);
/// assert_eq!(fewer_steps((0..100).collect(), |numbers| numbers, both), [7, 80]);
/// ```
pub fn fewer_steps<S: Clone, T>(
    whole: S,
    steps: impl Fn(&mut S) -> &mut Vec<T>,
    mut still: impl FnMut(&S) -> bool,
) -> S {
    let mut whole = whole;
    let mut count = steps(&mut whole).len();
    let mut piece = count.div_ceil(2);
    while piece > 0 {
        let (before, mut at) = (count, 0);
        while at < count {
            let mut less = whole.clone();
            steps(&mut less).drain(at..(at + piece).min(count));
            if still(&less) {
                whole = less;
                count = steps(&mut whole).len();
            } else {
                at += piece;
            }
        }
        // A step may have been needed only by a removed one.
        let again = piece == 1 && count < before;
        piece = if again { 1 } else { piece / 2 };
    }
    whole
}
