//! A range image: what a range is beside the pages that have blobs of their own, and references to these.
//!
//! ```text
//! time of the image | newest commit in it | horizon | records of a range | of an update range | row layout (8)
//! columns | their types (24 each) | slots | closed (8)
//! for each update range
//!     numbers handed out | highest that is history | highest given up | what expiring left: versions, pinned, snapshots kept
//!     history pages | references (24 bytes each)
//! merged (8), and if so
//!     start times    0 | the one        or 1 | reference
//!     updates        0                  or 1 | reference
//!     lineages | a TPS for each update range, of each (64); the first is the meta-data's
//!     the lineage of each column (64), then references to the columns, or to one page of rows
//! if not
//!     inserts        see `records`
//! for each update range
//!     tail records   see `records`
//! for each update range (format 2)
//!     outlines of its history pages   see `outlines`
//! if merged (format 2)
//!     outlines of its pages           see `outlines`
//! ```
//!
//! An image of format 1 has no outlines: its pages are read and checked when it is restored.
use types::{BlobRef, DataType, StartTime, Timestamp};

use crate::codec::meta::start_word;
use crate::codec::{BlobKind, Damage, Reader, Shape, Writer};
use crate::image::outlines::{PagesOutline, decode_history_outline, encode_history_outline};
use crate::image::records::{InsertsReader, InsertsWriter, TailsReader, TailsWriter};
use crate::page::archived::ExpiryFindings;
use crate::page::contents::HistoryOutline;
use crate::page::options::TableOptions;
use crate::page::options::page_records;
use crate::page::words::Layout;
use crate::value::kept::Kept;

/// The first format of images that have the outlines of their pages.
const WITH_OUTLINES: u8 = 2;
/// Numbers of tail records are below this: they share a word with a count, see `sequence`.
const SEQUENCES_END: u64 = 1 << 47;

/// The image of a range, but for the records that are in no page of their own.
pub(crate) struct RangeBytes {
    /// when it was taken: it has all commits up to here, and no others
    pub(crate) at: Timestamp,
    /// the newest of them
    pub(crate) newest: Timestamp,
    /// from where on the table kept everything
    pub(crate) horizon: Timestamp,
    /// slots handed out
    pub(crate) len: usize,
    /// whether no more will be
    pub(crate) is_closed: bool,
    /// of each update range
    pub(crate) archives: Vec<ArchiveImage>,
    /// `None` if nothing was merged
    pub(crate) pages: Option<PagesImage>,
}

/// The image of the past of an update range.
pub(crate) struct ArchiveImage {
    /// the highest number of a tail record, merged or in the image
    pub(crate) allocated: u64,
    pub(crate) through: u64,
    pub(crate) given_up: u64,
    pub(crate) expired: ExpiryFindings,
    pub(crate) pages: Vec<BlobRef>,
    /// of each page; `None` in images that have none
    pub(crate) outlines: Option<Vec<HistoryOutline>>,
}

/// The image of the base pages.
pub(crate) struct PagesImage {
    pub(crate) starts: StartsImage,
    pub(crate) updates: Option<BlobRef>,
    /// the distinct ones; the first is that of the meta-data
    pub(crate) lineages: Vec<Vec<u64>>,
    /// which of them each column has
    pub(crate) lineage_of_column: Vec<usize>,
    /// the columns, or one page of rows
    pub(crate) pages: Vec<BlobRef>,
    /// `None` in images that have none
    pub(crate) outlines: Option<PagesOutline>,
}

impl RangeBytes {
    /// Whether it says what is in its pages.
    pub(crate) fn has_outlines(&self) -> bool {
        self.archives.iter().all(|archive| archive.outlines.is_some())
    }
}

/// Where Start Time is.
pub(crate) enum StartsImage {
    /// All were inserted by one transaction; or none at all.
    One(u64),
    Each(BlobRef),
}

impl StartsImage {
    /// The blob that has them, if they are more than one.
    pub(crate) fn blob(&self) -> Option<BlobRef> {
        match self {
            StartsImage::One(_) => None,
            StartsImage::Each(blob) => Some(*blob),
        }
    }
}

impl Writer {
    fn blob(&mut self, blob: BlobRef) {
        self.bytes(&blob.to_bytes());
    }

    fn blobs(&mut self, blobs: &[BlobRef]) {
        self.number(blobs.len() as u64);
        blobs.iter().for_each(|blob| self.blob(*blob));
    }
}

impl Reader<'_> {
    fn blob(&mut self, what: &str) -> Result<BlobRef, Damage> {
        let bytes = self.bytes(BlobRef::ENCODED_LEN, what)?;
        Ok(BlobRef::from_bytes(std::array::from_fn(|i| bytes[i])))
    }

    fn blobs(&mut self, what: &str) -> Result<Vec<BlobRef>, Damage> {
        let mut left = self.count(usize::MAX, what)?;
        let mut blobs = Vec::new();
        while left > 0 {
            blobs.push(self.blob(what)?);
            left -= 1;
        }
        Ok(blobs)
    }

    fn time(&mut self, what: &str) -> Result<Timestamp, Damage> {
        Ok(Timestamp(self.at_most(Timestamp::MAX.0, what)?))
    }
}

/// The bytes of an image of a table with these types and options.
pub(crate) fn encode_range(
    (types, options): (&[DataType], &TableOptions),
    image: &RangeBytes,
    inserts: Option<&InsertsWriter>,
    tails: &[TailsWriter],
) -> Vec<u8> {
    let mut writer = BlobKind::Range.begin();
    let sizes = [options.range_records, options.update_range_records].map(|size| size as u64);
    for number in [image.at.0, image.newest.0, image.horizon.0].into_iter().chain(sizes) {
        writer.number(number);
    }
    writer.byte(u8::from(options.layout == Layout::Row));
    writer.number(types.len() as u64);
    types.iter().for_each(|data_type| writer.data_type(*data_type));
    writer.number(image.len as u64);
    writer.byte(u8::from(image.is_closed));
    image.archives.iter().for_each(|archive| encode_archive(archive, &mut writer));
    writer.byte(u8::from(image.pages.is_some()));
    image.pages.iter().for_each(|pages| encode_pages(pages, &mut writer));
    inserts.iter().for_each(|inserts| inserts.finish(&mut writer));
    let page_records = page_records(options.update_range_records) as u64;
    for (archive, tails) in image.archives.iter().zip(tails) {
        tails.finish((archive.through, archive.allocated), page_records, &mut writer);
    }
    let outlines = image.archives.iter().flat_map(|archive| archive.outlines.as_deref().unwrap_or_default());
    outlines.for_each(|outline| encode_history_outline(outline, &mut writer));
    let outlines = image.pages.as_ref().and_then(|pages| pages.outlines.as_ref());
    outlines.iter().for_each(|outlines| outlines.encode(&mut writer));
    writer.finish()
}

fn encode_archive(archive: &ArchiveImage, writer: &mut Writer) {
    let (len_expired, pinned) = (archive.expired.len as u64, archive.expired.pinned as u64);
    for number in [archive.allocated, archive.through, archive.given_up, len_expired, pinned] {
        writer.number(number);
    }
    writer.number(archive.expired.kept.horizon().0);
    let old: Vec<u64> = archive.expired.kept.old().iter().map(|at| at.0).collect();
    writer.number(old.len() as u64);
    writer.array(&old);
    writer.blobs(&archive.pages);
}

fn encode_pages(image: &PagesImage, writer: &mut Writer) {
    match &image.starts {
        StartsImage::One(word) => {
            writer.byte(0);
            writer.number(if *word == StartTime::TOMBSTONE { 0 } else { *word });
        }
        StartsImage::Each(blob) => {
            writer.byte(1);
            writer.blob(*blob);
        }
    }
    writer.byte(u8::from(image.updates.is_some()));
    image.updates.iter().for_each(|blob| writer.blob(*blob));
    writer.number(image.lineages.len() as u64);
    image.lineages.iter().for_each(|lineage| writer.array(lineage));
    writer.array(&image.lineage_of_column.iter().map(|lineage| *lineage as u64).collect::<Vec<u64>>());
    writer.blobs(&image.pages);
}

/// An image with its records: those of insert pages if nothing was merged, and the tail records of each update range with their place.
pub(crate) type RangeRecords<'a> = (RangeBytes, Option<InsertsReader<'a>>, (Vec<TailsReader<'a>>, TailsPlace));

/// Where the tail records of an image are, to read them without the rest.
pub(crate) struct TailsPlace {
    bytes_from: usize,
    len: usize,
    at: Timestamp,
    /// of each update range, the highest number that is history, and the highest handed out
    numbers: Vec<(u64, u64)>,
}

impl TailsPlace {
    /// Whether tail records were ever numbered.
    pub(crate) fn has_numbers(&self) -> bool {
        self.numbers.iter().any(|(_, allocated)| *allocated > 0)
    }

    /// The tail records of each update range of a table with these types and options.
    pub(crate) fn read<'a>(
        &self,
        image: &'a [u8],
        types: &[DataType],
        options: &TableOptions,
    ) -> Result<Vec<TailsReader<'a>>, Damage> {
        let reader = &mut BlobKind::Range.resume(image, self.bytes_from);
        self.read_with(reader, types, options)
    }

    fn read_with<'a>(
        &self,
        reader: &mut Reader<'a>,
        types: &[DataType],
        options: &TableOptions,
    ) -> Result<Vec<TailsReader<'a>>, Damage> {
        let shape = Shape { types, len: self.len, at: self.at };
        let page_records = page_records(options.update_range_records) as u64;
        let numbers = self.numbers.iter().enumerate();
        let read = |(part, numbers): (usize, &(u64, u64))| {
            TailsReader::read(reader, shape, slots_of(options, self.len, part), *numbers, page_records)
        };
        numbers.map(read).collect()
    }
}

/// The image of a range of a table with these types and options.
pub(crate) fn decode_range<'a>(
    bytes: &'a [u8],
    types: &[DataType],
    options: &TableOptions,
) -> Result<RangeRecords<'a>, Damage> {
    let (mut reader, format) = BlobKind::Range.open_with_format(bytes)?;
    let reader = &mut reader;
    let (at, newest) = (reader.time("its time")?, reader.time("its newest commit")?);
    reader.check(newest <= at, || format!("is of {}, and has a commit of {}", at.0, newest.0))?;
    let horizon = reader.time("its horizon")?;
    check_options(reader, types, options)?;
    let len = reader.count(options.range_records, "slots")?;
    let is_closed = reader.flag("whether it is closed")?;
    let shape = Shape { types, len, at };
    let parts = options.range_records / options.update_range_records;
    let mut archives = (0..parts).map(|_| decode_archive(reader, options)).collect::<Result<Vec<_>, Damage>>()?;
    let is_merged = reader.flag("whether it was merged")?;
    let (mut pages, mut inserts) = (None, None);
    if is_merged {
        reader.check(is_closed, || "was merged and takes records".into())?;
        pages = Some(decode_pages(reader, shape, options, &archives)?);
    } else {
        let has_history = archives.iter().any(|archive| archive.through > 0 || !archive.pages.is_empty());
        reader.check(!has_history, || "has history of what was not merged".into())?;
        inserts = Some(InsertsReader::read(reader, shape)?);
    }
    let numbers = archives.iter().map(|archive| (archive.through, archive.allocated)).collect();
    let tails_place = TailsPlace { bytes_from: bytes.len() - reader.left(), len, at, numbers };
    let tails = tails_place.read_with(reader, types, options)?;
    if format >= WITH_OUTLINES {
        for (part, archive) in archives.iter_mut().enumerate() {
            let (slots, count) = (slots_of(options, len, part), archive.pages.len());
            let outline = |_| decode_history_outline(reader, shape, slots.clone(), archive.through);
            archive.outlines = Some((0..count).map(outline).collect::<Result<_, Damage>>()?);
        }
        if let Some(pages) = &mut pages {
            pages.outlines = Some(PagesOutline::decode(reader, shape, options.layout, pages)?);
        }
    }
    reader.check_end()?;
    let head = RangeBytes { at, newest, horizon, len, is_closed, archives, pages };
    Ok((head, inserts, (tails, tails_place)))
}

/// The slots of an update range of a range that has `len`.
pub(crate) fn slots_of(options: &TableOptions, len: usize, part: usize) -> std::ops::Range<usize> {
    let first = part * options.update_range_records;
    first.min(len)..(first + options.update_range_records).min(len)
}

/// The table is as it was when the image was taken.
fn check_options(reader: &mut Reader<'_>, types: &[DataType], options: &TableOptions) -> Result<(), Damage> {
    for (size, what) in [(options.range_records, "a range"), (options.update_range_records, "an update range")] {
        let found = reader.number("sizes")?;
        reader.check(found == size as u64, || format!("has {what} of {found} records, and its table of {size}"))?;
    }
    let is_row = reader.flag("whether it is in row layout")?;
    reader.check(is_row == (options.layout == Layout::Row), || "is of another layout than its table".into())?;
    let columns = reader.number("columns")?;
    reader.check(columns == types.len() as u64, || format!("has {columns} columns, and its table {}", types.len()))?;
    types.iter().try_for_each(|data_type| reader.data_type(*data_type))
}

fn decode_archive(reader: &mut Reader<'_>, options: &TableOptions) -> Result<ArchiveImage, Damage> {
    let allocated = reader.at_most(SEQUENCES_END, "the numbers of tail records")?;
    let through = reader.at_most(allocated, "the numbers that are history")?;
    let page_records = page_records(options.update_range_records) as u64;
    let is_whole = through.is_multiple_of(page_records);
    reader.check(is_whole, || format!("has history up to {through}, which is no tail page's end"))?;
    let given_up = reader.at_most(through, "the numbers given up")?;
    let len = reader.count(u32::MAX as usize, "versions that were looked at")?;
    let pinned = reader.count(u32::MAX as usize, "versions that are pinned")?;
    let kept_from = reader.time("the horizon of its history")?;
    let count = reader.count(usize::MAX, "snapshots kept")?;
    let old: Vec<Timestamp> = reader.array::<u64>(count, "snapshots kept")?.into_iter().map(Timestamp).collect();
    let is_ascending = old.is_sorted_by(|left, right| left < right) && old.last().is_none_or(|last| *last < kept_from);
    reader.check(is_ascending, || format!("has snapshots kept that do not ascend to {}", kept_from.0))?;
    let kept = Kept::of_parts(kept_from, old.into());
    let pages = reader.blobs("history pages")?;
    Ok(ArchiveImage {
        allocated,
        through,
        given_up,
        expired: ExpiryFindings { len, kept, pinned },
        pages,
        outlines: None,
    })
}

fn decode_pages(
    reader: &mut Reader<'_>,
    shape: Shape<'_>,
    options: &TableOptions,
    archives: &[ArchiveImage],
) -> Result<PagesImage, Damage> {
    let starts = match reader.flag("where Start Time is")? {
        false => {
            let number = reader.number("Start Time")?;
            StartsImage::One(start_word(reader, shape, number)?)
        }
        true => StartsImage::Each(reader.blob("Start Time")?),
    };
    let updates = match reader.flag("whether there are updates")? {
        true => Some(reader.blob("updates")?),
        false => None,
    };
    let width = shape.types.len();
    let count = reader.count(width + 1, "lineages")?;
    reader.check(count > 0, || "has no lineage".into())?;
    let mut lineages: Vec<Vec<u64>> = Vec::new();
    for _ in 0..count {
        let lineage = reader.array::<u64>(archives.len(), "TPS")?;
        let newest = lineages.first().unwrap_or(&lineage);
        for (part, (tps, newest)) in lineage.iter().zip(newest).enumerate() {
            let archive = &archives[part];
            let is_right = *tps >= archive.through && tps <= newest && *newest <= archive.allocated;
            reader.check(is_right, || {
                format!(
                    "has a TPS of {tps}, where {} is history, {newest} merged and {} handed out",
                    archive.through, archive.allocated
                )
            })?;
        }
        lineages.push(lineage);
    }
    let of_columns = reader.array::<u64>(width, "lineages of columns")?;
    let is_within = of_columns.iter().all(|lineage| *lineage < count as u64);
    reader.check(is_within, || format!("has a column of another than its {count} lineages"))?;
    let lineage_of_column: Vec<usize> = of_columns.into_iter().map(|lineage| lineage as usize).collect();
    let pages = reader.blobs("pages")?;
    let expected = if options.layout == Layout::Row { width.min(1) } else { width };
    reader.check(pages.len() == expected, || format!("has {} pages for {width} columns", pages.len()))?;
    Ok(PagesImage { starts, updates, lineages, lineage_of_column, pages, outlines: None })
}
