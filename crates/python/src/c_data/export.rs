//! Schemas, arrays and streams of ours as structures that others read and release.
//!
//! The private part of a structure is a box with all that its pointers lead to. Releasing takes the box back; children that the
//! reader has moved away are released already, and their drop does nothing.
use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use arrow_array::{Array, RecordBatch, StructArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::{ArrayData, layout};
use arrow_schema::{DataType, Field, SchemaRef};

use super::format::format_of;
use super::{CArray, CSchema, CStream, NULLABLE, Released};

/// What a structure that is exported points to: children, which are freed with it, and whatever else it owns.
struct Private<T, Owned> {
    children: Vec<*mut T>,
    dictionary: *mut T,
    _owned: Owned,
}

impl<T, Owned> Drop for Private<T, Owned> {
    fn drop(&mut self) {
        for child in self.children.drain(..).chain([self.dictionary]).filter(|child| !child.is_null()) {
            // SAFETY: `leaked` made the pointer of a box, which nothing else frees: readers only move the content away.
            drop(unsafe { Box::from_raw(child) });
        }
    }
}

fn leaked<T>(structure: T) -> *mut T {
    Box::into_raw(Box::new(structure))
}

/// A name without zero bytes, behind which C would not look.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

type SchemaParts = Private<CSchema, (CString, CString)>;

unsafe extern "C" fn release_schema(schema: *mut CSchema) {
    // SAFETY: a reader calls this with the structure that it belongs to, once.
    let schema = unsafe { &mut *schema };
    schema.release = None;
    // SAFETY: `schema_of` put a box of this type there, and nothing else takes it out.
    drop(unsafe { Box::from_raw(schema.private.cast::<SchemaParts>()) });
}

/// A field as a structure.
///
/// # Errors
/// The name of a type that is not passed on.
pub(crate) fn schema_of(field: &Field) -> Result<CSchema, String> {
    let data_type = field.data_type();
    let format = format_of(data_type).ok_or_else(|| format!("{data_type} is not passed on to other libraries"))?;
    let nested: Vec<&Field> = match data_type {
        DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => vec![item],
        _ => Vec::new(),
    };
    let children = nested.into_iter().map(schema_of).collect::<Result<Vec<_>, _>>()?;
    let dictionary = match data_type {
        DataType::Dictionary(_, values) => leaked(schema_of(&Field::new("", values.as_ref().clone(), true))?),
        _ => ptr::null_mut(),
    };
    let children = children.into_iter().map(leaked).collect();
    let mut parts = Box::new(SchemaParts { children, dictionary, _owned: (c_text(&format), c_text(field.name())) });
    Ok(CSchema {
        format: parts._owned.0.as_ptr(),
        name: parts._owned.1.as_ptr(),
        metadata: ptr::null(),
        flags: if field.is_nullable() { NULLABLE } else { 0 },
        child_count: parts.children.len() as i64,
        children: parts.children.as_mut_ptr(),
        dictionary,
        release: Some(release_schema),
        private: Box::into_raw(parts).cast(),
    })
}

/// A schema as a structure: that of a struct with its columns.
///
/// # Errors
/// As [`schema_of`].
pub(crate) fn schema_of_rows(schema: &SchemaRef) -> Result<CSchema, String> {
    schema_of(&Field::new("", DataType::Struct(schema.fields().clone()), false))
}

type ArrayParts = Private<CArray, (Vec<Buffer>, Vec<*const c_void>)>;

unsafe extern "C" fn release_array(array: *mut CArray) {
    // SAFETY: a reader calls this with the structure that it belongs to, once.
    let array = unsafe { &mut *array };
    array.release = None;
    // SAFETY: `array_of` put a box of this type there, and nothing else takes it out.
    drop(unsafe { Box::from_raw(array.private.cast::<ArrayParts>()) });
}

/// The bits that say which values are there, beginning where the array's other buffers do.
fn validity(data: &ArrayData) -> Option<Buffer> {
    let nulls: &NullBuffer = data.nulls()?;
    if nulls.offset() == data.offset() {
        return Some(nulls.buffer().clone());
    }
    let mut bits = BooleanBufferBuilder::new(data.offset() + data.len());
    bits.append_n(data.offset(), false);
    bits.append_buffer(nulls.inner());
    Some(bits.finish().into_inner())
}

/// An array as a structure; its buffers are shared.
pub(crate) fn array_of(data: &ArrayData) -> CArray {
    let layout = layout(data.data_type());
    let mut owned: Vec<Buffer> = Vec::with_capacity(data.buffers().len() + 2);
    let mut pointers: Vec<*const c_void> = Vec::with_capacity(data.buffers().len() + 2);
    if layout.can_contain_null_mask {
        let bits = validity(data);
        pointers.push(bits.as_ref().map_or(ptr::null(), |bits| bits.as_ptr().cast()));
        owned.extend(bits);
    }
    pointers.extend(data.buffers().iter().map(|buffer| buffer.as_ptr().cast::<c_void>()));
    owned.extend(data.buffers().iter().cloned());
    if layout.variadic {
        // Views are followed by the buffers that they look into, and these by their lengths.
        let lengths: Vec<i64> = data.buffers().iter().skip(1).map(|buffer| buffer.len() as i64).collect();
        let lengths = Buffer::from_vec(lengths);
        pointers.push(lengths.as_ptr().cast());
        owned.push(lengths);
    }
    let is_dictionary = matches!(data.data_type(), DataType::Dictionary(..));
    let mut nested = data.child_data().iter().map(|child| leaked(array_of(child)));
    let dictionary = if is_dictionary { nested.next().unwrap_or(ptr::null_mut()) } else { ptr::null_mut() };
    let children: Vec<*mut CArray> = nested.collect();
    let null_count = if data.data_type().is_null() { data.len() } else { data.null_count() };
    let mut parts = Box::new(ArrayParts { children, dictionary, _owned: (owned, pointers) });
    CArray {
        length: data.len() as i64,
        null_count: null_count as i64,
        offset: data.offset() as i64,
        buffer_count: parts._owned.1.len() as i64,
        child_count: parts.children.len() as i64,
        buffers: parts._owned.1.as_mut_ptr(),
        children: parts.children.as_mut_ptr(),
        dictionary,
        release: Some(release_array),
        private: Box::into_raw(parts).cast(),
    }
}

/// Gives the batches of a stream, one after the other; an error ends it.
pub(crate) type Batches = Box<dyn FnMut() -> Option<Result<RecordBatch, String>> + Send>;

/// The state of a stream that is exported.
struct Stream {
    schema: SchemaRef,
    batches: Batches,
    error: CString,
}

/// What C's functions return where something failed: `EIO`.
const FAILED: c_int = 5;

impl Stream {
    /// Puts what is made into `out`, or keeps the error for `get_last_error`.
    fn answer<T>(&mut self, out: *mut T, make: impl FnOnce(&mut Stream) -> Result<T, String>) -> c_int {
        let made = catch_unwind(AssertUnwindSafe(|| make(self))).unwrap_or_else(|_| Err("internal error".to_owned()));
        match made {
            Ok(structure) => {
                // SAFETY: the reader passes memory for one structure, in which there is none yet.
                unsafe { ptr::write(out, structure) };
                0
            }
            Err(error) => {
                self.error = c_text(&error);
                FAILED
            }
        }
    }

    fn next(&mut self) -> Result<CArray, String> {
        match (self.batches)() {
            None => Ok(CArray::EMPTY),
            Some(batch) => Ok(array_of(&StructArray::from(batch?).to_data())),
        }
    }
}

/// The state of a stream.
///
/// # Safety
/// - `stream` is one that [`stream_of`] made, and not released.
/// - Nobody else uses it meanwhile.
unsafe fn state<'a>(stream: *mut CStream) -> &'a mut Stream {
    // SAFETY: as the caller promises, a box of this type is there and no other reference to it.
    unsafe { &mut *(*stream).private.cast::<Stream>() }
}

unsafe extern "C" fn get_schema(stream: *mut CStream, out: *mut CSchema) -> c_int {
    // SAFETY: readers call this with the stream that it belongs to, one at a time.
    unsafe { state(stream) }.answer(out, |stream| schema_of_rows(&stream.schema))
}

unsafe extern "C" fn get_next(stream: *mut CStream, out: *mut CArray) -> c_int {
    // SAFETY: as in `get_schema`.
    unsafe { state(stream) }.answer(out, Stream::next)
}

unsafe extern "C" fn get_last_error(stream: *mut CStream) -> *const c_char {
    // SAFETY: as in `get_schema`.
    unsafe { state(stream) }.error.as_ptr()
}

unsafe extern "C" fn release_stream(stream: *mut CStream) {
    // SAFETY: a reader calls this with the structure that it belongs to, once.
    let stream = unsafe { &mut *stream };
    stream.release = None;
    // SAFETY: `stream_of` put a box of this type there, and nothing else takes it out.
    drop(unsafe { Box::from_raw(stream.private.cast::<Stream>()) });
}

/// Batches as a structure.
pub(crate) fn stream_of(schema: SchemaRef, batches: Batches) -> CStream {
    CStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private: leaked(Stream { schema, batches, error: CString::default() }).cast(),
    }
}
