use uet_model::Memory;
use uet_model::ses::RegionId;

/// Memory of the application. The model reads and writes it while an operation, a receive or a registration uses it.
pub trait UserMemory: Memory {
    /// Returns a part of the memory.
    fn window(&self, offset: usize, length: usize) -> Box<dyn UserMemory>;

    /// Returns the address of the first byte, which completions report.
    fn address(&self) -> usize;
}

/// A registered memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub(crate) id: RegionId,
    /// The key by which peers name it.
    pub key: u64,
}
