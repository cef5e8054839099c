//! Structures of others as schemas, arrays and batches of ours.
//!
//! The buffers of an array keep the structure that it came in, by one count for all of them; the last that goes releases it. How long
//! a buffer is follows from the type and the number of values; where that number says nothing (texts), from the last offset. Each
//! array is then checked in full, texts and offsets too, so that what is wrong within it is an error and harms nothing.
use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, StructArray, make_array};
use arrow_buffer::Buffer;
use arrow_data::{ArrayData, ArrayDataBuilder, BufferSpec, layout};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::format::type_of;
use super::{CArray, CSchema, CStream, NULLABLE, Released};

/// A text that a structure points to.
fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: texts of the interface end with a zero byte, and live as long as their structure, which the caller holds.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// What a list of pointers in a structure leads to.
///
/// # Safety
/// `pointers` has `count` pointers to structures that live as long as `'a`, unless `count` is 0.
unsafe fn listed<'a, T>(pointers: *mut *mut T, count: i64) -> Vec<&'a T> {
    let count = if pointers.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    // SAFETY: as the caller promises.
    (0..count).filter_map(|at| unsafe { (*pointers.add(at)).as_ref() }).collect()
}

/// A structure as a field.
///
/// # Errors
/// The format of a type that is not taken.
pub(crate) fn field_of(schema: &CSchema) -> Result<Field, String> {
    if schema.is_released() {
        return Err("the Arrow schema has been used already".to_owned());
    }
    // SAFETY: the structure has so many children, which live as long as it does.
    let children = unsafe { listed(schema.children, schema.child_count) };
    let children = children.into_iter().map(field_of).collect::<Result<Vec<_>, _>>()?;
    let (format, name) = (text(schema.format), text(schema.name));
    let unknown = || format!("column \"{name}\" has the Arrow format \"{format}\", which is not supported");
    let mut data_type = type_of(&format, children).ok_or_else(unknown)?;
    // SAFETY: the pointer is null or leads to a structure that lives as long as this one.
    if let Some(dictionary) = unsafe { schema.dictionary.as_ref() } {
        data_type = DataType::Dictionary(Box::new(data_type), Box::new(field_of(dictionary)?.data_type().clone()));
    }
    Ok(Field::new(name, data_type, schema.flags & NULLABLE != 0))
}

/// A structure as the schema of rows.
fn schema_of(schema: &CSchema) -> Result<SchemaRef, String> {
    let field = field_of(schema)?;
    match field.data_type() {
        DataType::Struct(fields) => Ok(Arc::new(Schema::new(fields.clone()))),
        other => {
            Err(format!("rows are expected, and this is an array of {other}; give it a name as a column of a table"))
        }
    }
}

/// A count of a structure.
fn count(number: i64) -> Result<usize, String> {
    usize::try_from(number).map_err(|_| format!("an Arrow array has the length {number}"))
}

/// Reads the buffers of one array.
struct Reader<'a> {
    array: &'a CArray,
    owner: &'a Arc<CArray>,
    /// Values, those before the offset too.
    slots: usize,
}

impl Reader<'_> {
    /// The pointer to buffer number `at`; null where there is none.
    fn pointer(&self, at: usize) -> *const c_void {
        if self.array.buffers.is_null() || at >= usize::try_from(self.array.buffer_count).unwrap_or(0) {
            return std::ptr::null();
        }
        // SAFETY: the structure has so many pointers to buffers.
        unsafe { *self.array.buffers.add(at) }
    }

    /// Buffer number `at`, of so many bytes.
    fn buffer(&self, at: usize, bytes: usize) -> Result<Buffer, String> {
        let Some(start) = NonNull::new(self.pointer(at).cast_mut().cast::<u8>()).filter(|_| bytes > 0) else {
            return if bytes == 0 { Ok(Buffer::from(&[] as &[u8])) } else { Err(missing(at)) };
        };
        // SAFETY: by the specification the buffer of a live structure has the bytes that its type and length ask for, and the
        // buffer made here holds the structure.
        Ok(unsafe { Buffer::from_custom_allocation(start, bytes, self.owner.clone()) })
    }

    /// The number that stands at `at` in buffer number `buffer`, whose numbers have `width` bytes.
    fn number(&self, buffer: usize, at: usize, width: usize) -> Result<usize, String> {
        let bytes = self.buffer(buffer, (at + 1) * width)?;
        let bytes = &bytes.as_slice()[at * width..];
        let number = match width {
            4 => bytes.try_into().map(|bytes| i64::from(i32::from_le_bytes(bytes))),
            _ => bytes.try_into().map(i64::from_le_bytes),
        };
        count(number.map_err(|_| missing(buffer))?)
    }

    /// The buffers behind that of the missing values.
    fn buffers(&self, data_type: &DataType) -> Result<Vec<Buffer>, String> {
        let layout = layout(data_type);
        let first = usize::from(layout.can_contain_null_mask);
        let mut buffers = Vec::with_capacity(layout.buffers.len());
        for (at, spec) in layout.buffers.iter().enumerate() {
            let at = at + first;
            let is_of_offsets = matches!(layout.buffers.get(at - first + 1), Some(BufferSpec::VariableWidth))
                || matches!(data_type, DataType::List(_) | DataType::LargeList(_));
            let bytes = match spec {
                BufferSpec::FixedWidth { byte_width, .. } if is_of_offsets => {
                    if self.pointer(at).is_null() && self.slots == 0 {
                        // An array without values may come without its one offset.
                        buffers.push(Buffer::from_vec(vec![0u8; *byte_width]));
                        continue;
                    }
                    (self.slots + 1) * byte_width
                }
                BufferSpec::FixedWidth { byte_width, .. } => self.slots * byte_width,
                BufferSpec::BitMap => self.slots.div_ceil(8),
                BufferSpec::VariableWidth if self.pointer(at - 1).is_null() => 0,
                BufferSpec::VariableWidth => {
                    let is_wide = matches!(data_type, DataType::LargeUtf8 | DataType::LargeBinary);
                    self.number(at - 1, self.slots, if is_wide { 8 } else { 4 })?
                }
                BufferSpec::AlwaysNull => 0,
            };
            buffers.push(self.buffer(at, bytes)?);
        }
        if layout.variadic {
            let last = count(self.array.buffer_count)?.saturating_sub(1);
            for at in first + 1..last {
                buffers.push(self.buffer(at, self.number(last, at - first - 1, 8)?)?);
            }
        }
        Ok(buffers)
    }
}

fn missing(at: usize) -> String {
    format!("buffer {at} of an Arrow array is missing")
}

/// An array of a type, within the structure `owner`, as data.
fn data_of(array: &CArray, data_type: &DataType, owner: &Arc<CArray>) -> Result<ArrayData, String> {
    let (length, offset) = (count(array.length)?, count(array.offset)?);
    let slots = length.checked_add(offset).ok_or_else(|| "an Arrow array is too long".to_owned())?;
    let reader = Reader { array, owner, slots };
    let mut builder = ArrayDataBuilder::new(data_type.clone()).len(length).offset(offset);
    if layout(data_type).can_contain_null_mask && array.null_count != 0 && !reader.pointer(0).is_null() {
        builder = builder.null_bit_buffer(Some(reader.buffer(0, slots.div_ceil(8))?));
    }
    for buffer in reader.buffers(data_type)? {
        builder = builder.add_buffer(buffer);
    }
    // SAFETY: the structure has so many children, which live as long as it does.
    let children = unsafe { listed(array.children, array.child_count) };
    let types: Vec<&DataType> = match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => vec![item.data_type()],
        _ => Vec::new(),
    };
    if types.len() != children.len() {
        return Err(format!("an Arrow array of {data_type} has {} children", children.len()));
    }
    for (child, data_type) in children.into_iter().zip(types) {
        builder = builder.add_child_data(data_of(child, data_type, owner)?);
    }
    if let DataType::Dictionary(_, values) = data_type {
        // SAFETY: the pointer is null or leads to a structure that lives as long as this one.
        let dictionary = unsafe { array.dictionary.as_ref() }.ok_or("an Arrow dictionary has no values")?;
        builder = builder.add_child_data(data_of(dictionary, values, owner)?);
    }
    builder.align_buffers(true).build().map_err(|error| error.to_string())
}

/// A structure as rows of a schema.
///
/// # Errors
/// What is wrong with the array.
fn rows_of(array: CArray, schema: &SchemaRef) -> Result<RecordBatch, String> {
    let owner = Arc::new(array);
    let data = data_of(&owner, &DataType::Struct(schema.fields().clone()), &owner)?;
    let length = data.len();
    let rows = StructArray::from(make_array(data).to_data());
    let options = RecordBatchOptions::new().with_row_count(Some(length));
    let columns = rows.columns().to_vec();
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(|error| error.to_string())
}

/// The batches of a structure of others.
pub(crate) struct StreamReader {
    stream: CStream,
    schema: SchemaRef,
}

impl StreamReader {
    /// Reads the schema.
    ///
    /// # Errors
    /// What its maker says, or that rows do not come with such a type.
    pub(crate) fn new(mut stream: CStream) -> Result<StreamReader, String> {
        let get = stream.get_schema.filter(|_| !stream.is_released());
        let get = get.ok_or_else(|| "the Arrow stream has been used already".to_owned())?;
        let mut schema = CSchema::EMPTY;
        // SAFETY: the stream is live, and there is room for the structure.
        let code = unsafe { get(&mut stream, &mut schema) };
        if code != 0 {
            return Err(last_error(&mut stream, code));
        }
        let schema = schema_of(&schema)?;
        Ok(StreamReader { stream, schema })
    }

    /// One batch as a stream.
    ///
    /// # Errors
    /// That the schema is none of rows, or what is wrong with the array.
    pub(crate) fn single(schema: &CSchema, array: CArray) -> Result<(SchemaRef, RecordBatch), String> {
        let schema = schema_of(schema)?;
        let batch = rows_of(array, &schema)?;
        Ok((schema, batch))
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

fn last_error(stream: &mut CStream, code: i32) -> String {
    let message = stream.get_last_error.map(|get| {
        // SAFETY: the stream is live, and its last call failed.
        text(unsafe { get(stream) })
    });
    message.filter(|message| !message.is_empty()).unwrap_or_else(|| format!("the Arrow stream failed with code {code}"))
}

impl Iterator for StreamReader {
    type Item = Result<RecordBatch, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let get = self.stream.get_next?;
        let mut array = CArray::EMPTY;
        // SAFETY: the stream is live, as only dropping this reader releases it, and there is room for the structure.
        let code = unsafe { get(&mut self.stream, &mut array) };
        if code != 0 {
            return Some(Err(last_error(&mut self.stream, code)));
        }
        (!array.is_released()).then(|| rows_of(array, &self.schema))
    }
}
