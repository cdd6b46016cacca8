//! A pool of sandboxes: memory, tables and stacks that are mapped once and used again and again.
//!
//! Without it each run maps its own address space and unmaps it afterwards, which takes longer than a short script.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::run::MAX_LEVELS;
use crate::sandbox::MAX_TABLE_ELEMENTS;

const LEVELS: usize = MAX_LEVELS as usize;

/// Sandboxes that are there for compiling, besides those that run: starting a run never waits for runs to end.
const COMPILING: u32 = 4;

/// Dirty memory of a sandbox that is put back in place when it is used again, and not given back to the system and
/// faulted in anew. What a run of an ordinary script writes to.
const KEEP_RESIDENT: usize = 1 << 20;

/// Core instances, memories and tables that one sandbox may take: the guest is one module and two small adapters.
const PARTS: u32 = 4;

/// Bytes of Wasmtime's own records for an instance; the guest's take less than a tenth of it.
const MAX_INSTANCE_BYTES: usize = 256 << 10;

/// Makes an engine allocate `slots` sandboxes from a pool, of at most `max_memory` bytes each.
pub(crate) fn configure(config: &mut Config, slots: u32, max_memory: u64) {
    let all = slots.saturating_mul(LEVELS as u32).saturating_add(COMPILING);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(all)
        .total_core_instances(all.saturating_mul(PARTS))
        .total_memories(all)
        .total_tables(all.saturating_mul(PARTS))
        .total_stacks(all)
        .max_core_instances_per_component(PARTS)
        .max_memories_per_component(1)
        .max_tables_per_component(PARTS)
        .max_component_instance_size(MAX_INSTANCE_BYTES)
        .max_core_instance_size(MAX_INSTANCE_BYTES)
        .table_elements(MAX_TABLE_ELEMENTS)
        .max_memory_size(usize::try_from(max_memory).unwrap_or(usize::MAX))
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(MAX_TABLE_ELEMENTS * size_of::<usize>())
        .async_stack_keep_resident(64 << 10)
        // Where Linux can say which pages were written to, only those are put back.
        .pagemap_scan(Enabled::Auto);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
}

/// Whose turn it is to take a sandbox from the pool. Whoever finds it empty waits, in order.
#[derive(Clone, Default)]
pub(crate) struct SandboxPool(Option<Slots>);

#[derive(Clone)]
struct Slots {
    /// By level. A script holds its sandbox while it waits for those that run inside of it, which must not wait for
    /// it: each level has slots of its own.
    running: [Arc<Semaphore>; LEVELS],
    compiling: Arc<Semaphore>,
}

/// The right to one sandbox. Must be dropped after it.
pub(crate) struct Slot(#[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>);

impl SandboxPool {
    pub(crate) fn new(slots: u32) -> Self {
        let semaphore = |permits: u32| Arc::new(Semaphore::new(permits as usize));
        Self(Some(Slots {
            running: std::array::from_fn(|_| semaphore(slots)),
            compiling: semaphore(COMPILING),
        }))
    }

    /// A sandbox for a script of this level: 1 for a run's own, one more for each workflow that it is inside of.
    pub(crate) async fn for_running(&self, level: usize) -> Slot {
        let level = level.clamp(1, LEVELS) - 1;
        Self::take(self.0.as_ref().map(|slots| &slots.running[level])).await
    }

    /// A sandbox for compiling.
    pub(crate) async fn for_compiling(&self) -> Slot {
        Self::take(self.0.as_ref().map(|slots| &slots.compiling)).await
    }

    async fn take(slots: Option<&Arc<Semaphore>>) -> Slot {
        match slots {
            // They are never closed.
            Some(slots) => Slot(slots.clone().acquire_owned().await.ok()),
            None => Slot(None),
        }
    }
}
