//! The server's allocator: mimalloc, with its plain calls for the usual alignments.
//!
//! Every request allocates and frees bodies of some 50 KB. The C library's allocator returns such memory to the kernel
//! and faults it in again each time (see docs/internals/performance.md). The feature `no_thp` turns huge pages off, of
//! which a server with a few connections uses only a fifth. `howdah-php` turns them on again for PHP.
//!
//! The crate `mimalloc` asks for an aligned block each time. That takes 70 instructions, a plain block 30, and a request
//! allocates 19 times.

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};

/// Alignment of plain blocks of at least this size, in bytes (`MI_MAX_ALIGN_SIZE` in mimalloc's `types.h`). Shorter
/// ones are aligned to 8.
const NATURAL_ALIGNMENT: usize = 16;

pub(crate) struct Allocator;

/// Returns `true` if a plain block of this size has this alignment.
const fn is_plain(align: usize, size: usize) -> bool {
    align <= NATURAL_ALIGNMENT && align <= size
}

// SAFETY: mimalloc returns null or a block of at least `size` bytes, aligned as `is_plain` says or as requested. Blocks
// of all its functions are freed by `mi_free` and resized by `mi_realloc`, which keeps their content.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (align, size) = (layout.align(), layout.size());
        // SAFETY: a layout's alignment is a power of two.
        let block = unsafe { if is_plain(align, size) { mi_malloc(size) } else { mi_malloc_aligned(size, align) } };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (align, size) = (layout.align(), layout.size());
        // SAFETY: as in `alloc`.
        let block = unsafe { if is_plain(align, size) { mi_zalloc(size) } else { mi_zalloc_aligned(size, align) } };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller passes a block of this allocator.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: the caller passes a block of this allocator; for the alignment see `alloc`.
        let block = unsafe {
            if is_plain(align, size) {
                mi_realloc(block.cast(), size)
            } else {
                mi_realloc_aligned(block.cast(), size, align)
            }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_keep_their_content() {
        for align in (0..8).map(|power| 1 << power) {
            for size in [1, 7, 8, 15, 16, 24, 48, 100, 4096, 70_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let larger = Layout::from_size_align(size + 33, align).unwrap();
                // SAFETY: the layouts are not empty, and each block is used with the layout that it has.
                unsafe {
                    let zeroed = Allocator.alloc_zeroed(layout);
                    let block = Allocator.alloc(layout);
                    assert!(std::slice::from_raw_parts(zeroed, size).iter().all(|&byte| byte == 0));
                    block.write_bytes(7, size);
                    let block = Allocator.realloc(block, layout, size + 33);
                    assert_eq!(
                        [zeroed.addr() % align, block.addr() % align],
                        [0, 0],
                        "{size} bytes, aligned to {align}"
                    );
                    assert!(std::slice::from_raw_parts(block, size).iter().all(|&byte| byte == 7));
                    Allocator.dealloc(zeroed, layout);
                    Allocator.dealloc(block, larger);
                }
            }
        }
    }
}
