pub(super) fn family() -> crate::Family {
    crate::Family::new("disagreements", "")
}
