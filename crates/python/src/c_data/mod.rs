//! Arrow's C data interface: the structures by which libraries of one process pass each other schemas, arrays and streams of them
//! without copies (<https://arrow.apache.org/docs/format/CDataInterface.html>).
//!
//! ```text
//! export: Field, ArrayData, batches ──▶ structure + release callback, which frees what the structure owns
//! import: structure ──▶ Field, ArrayData whose buffers hold the structure until the last of them goes
//! ```
//!
//! The `arrow` crates have the structures behind a feature, `ffi`, which the workspace does not build them with; so they are written
//! down here. Each of them owns what it points to: dropping it calls its release callback, if it has not been released or moved yet.
//! The foreign side is trusted to follow the specification, as nothing else can be: lengths are not checked against the memory behind
//! the pointers. What arrives within them is checked in full (`import.rs`).
pub(crate) mod export;
pub(crate) mod format;
pub(crate) mod import;

use std::ffi::{c_char, c_int, c_void};

/// A column may be NULL.
pub(crate) const NULLABLE: i64 = 2;

/// `ArrowSchema`: a type with a name.
#[repr(C)]
pub(crate) struct CSchema {
    pub(crate) format: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) metadata: *const c_char,
    pub(crate) flags: i64,
    pub(crate) child_count: i64,
    pub(crate) children: *mut *mut CSchema,
    pub(crate) dictionary: *mut CSchema,
    pub(crate) release: Option<unsafe extern "C" fn(*mut CSchema)>,
    pub(crate) private: *mut c_void,
}

/// `ArrowArray`: the values of a column.
#[repr(C)]
pub(crate) struct CArray {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) buffer_count: i64,
    pub(crate) child_count: i64,
    pub(crate) buffers: *mut *const c_void,
    pub(crate) children: *mut *mut CArray,
    pub(crate) dictionary: *mut CArray,
    pub(crate) release: Option<unsafe extern "C" fn(*mut CArray)>,
    pub(crate) private: *mut c_void,
}

/// `ArrowArrayStream`: batches one after the other.
#[repr(C)]
pub(crate) struct CStream {
    pub(crate) get_schema: Option<unsafe extern "C" fn(*mut CStream, *mut CSchema) -> c_int>,
    pub(crate) get_next: Option<unsafe extern "C" fn(*mut CStream, *mut CArray) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut CStream) -> *const c_char>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut CStream)>,
    pub(crate) private: *mut c_void,
}

/// A structure of the interface, which is released once.
pub(crate) trait Released: Sized {
    /// One that owns nothing.
    const EMPTY: Self;

    /// Whether it owns nothing, or nothing any more.
    fn is_released(&self) -> bool;
}

macro_rules! released {
    ($($name:ident { $($rest:tt)* })*) => {
        $(
            impl Released for $name {
                const EMPTY: $name = $name { $($rest)*, release: None, private: std::ptr::null_mut() };

                fn is_released(&self) -> bool {
                    self.release.is_none()
                }
            }

            impl Drop for $name {
                fn drop(&mut self) {
                    if let Some(release) = self.release {
                        // SAFETY: the callback belongs to this structure, which has not been released: it would have none then.
                        unsafe { release(self) };
                    }
                }
            }

            // SAFETY: the specification lets a structure be used and released by any thread, by one at a time; nothing here
            // changes one through a shared reference.
            unsafe impl Send for $name {}
            // SAFETY: see above.
            unsafe impl Sync for $name {}
        )*
    };
}

released! {
    CSchema {
        format: std::ptr::null(),
        name: std::ptr::null(),
        metadata: std::ptr::null(),
        flags: 0,
        child_count: 0,
        children: std::ptr::null_mut(),
        dictionary: std::ptr::null_mut()
    }
    CArray {
        length: 0,
        null_count: 0,
        offset: 0,
        buffer_count: 0,
        child_count: 0,
        buffers: std::ptr::null_mut(),
        children: std::ptr::null_mut(),
        dictionary: std::ptr::null_mut()
    }
    CStream { get_schema: None, get_next: None, get_last_error: None }
}
