//! The source of evicted pages: blobs that the owner of the storage keeps, and the errors of reading them.
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use types::BlobRef;

/// Gives evicted pages back: the checkpoints of a database.
pub trait PageSource: Send + Sync {
    /// Sees to it that a blob can be read as long as what is returned lives, whatever later checkpoints do away with. `None`
    /// where no checkpoint has it any more: then its page stays in memory.
    fn hold(&self, blob: BlobRef) -> Option<Arc<dyn HeldBlob>>;
}

/// A blob that can be read for as long as this lives.
pub trait HeldBlob: Send + Sync {
    /// Its bytes, which are what was written.
    ///
    /// # Errors
    /// Any: the reader of the page passes it on as a [`PageError`].
    fn read(&self) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>>;
}

/// Why an evicted page could not be read back. Other pages are not concerned.
#[derive(Clone)]
pub struct PageError(Arc<Failure>);

struct Failure {
    blob: BlobRef,
    /// what the page is, where that is known
    subject: Option<Arc<str>>,
    cause: Cause,
}

enum Cause {
    Source(Box<dyn Error + Send + Sync>),
    Damaged(String),
}

impl PageError {
    #[cold]
    pub(crate) fn unreadable(blob: BlobRef, cause: Box<dyn Error + Send + Sync>) -> PageError {
        PageError(Arc::new(Failure { blob, subject: None, cause: Cause::Source(cause) }))
    }

    #[cold]
    pub(crate) fn damaged(blob: BlobRef, what: String) -> PageError {
        PageError(Arc::new(Failure { blob, subject: None, cause: Cause::Damaged(what) }))
    }

    /// The error of a blob of something other than pages: what cannot be read, and why.
    #[cold]
    pub fn of_blob(blob: BlobRef, subject: &str, why: String) -> PageError {
        PageError(Arc::new(Failure { blob, subject: Some(subject.into()), cause: Cause::Source(why.into()) }))
    }

    /// The error of a page that is this.
    #[cold]
    pub(crate) fn of(self, subject: Option<&Arc<str>>) -> PageError {
        match (Arc::try_unwrap(self.0), subject) {
            (Ok(failure), Some(subject)) => PageError(Arc::new(Failure { subject: Some(subject.clone()), ..failure })),
            (Ok(failure), None) => PageError(Arc::new(failure)),
            (Err(shared), _) => PageError(shared),
        }
    }

    /// The blob that has the page.
    pub fn blob(&self) -> BlobRef {
        self.0.blob
    }

    /// The error of the source of pages; `None` where the blob could be read, and what is in it is no page.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match &self.0.cause {
            Cause::Source(cause) => Some(&**cause),
            Cause::Damaged(_) => None,
        }
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.subject {
            Some(subject) => write!(formatter, "{subject} cannot be read ({}): ", self.0.blob)?,
            None => write!(formatter, "an evicted page cannot be read back ({}): ", self.0.blob)?,
        }
        match &self.0.cause {
            Cause::Source(cause) => write!(formatter, "{cause}"),
            Cause::Damaged(what) => write!(formatter, "the {what}"),
        }
    }
}

impl fmt::Debug for PageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PageError({self})")
    }
}

/// Equal errors are of one page and have one text.
impl PartialEq for PageError {
    fn eq(&self, other: &PageError) -> bool {
        self.0.blob == other.0.blob && self.to_string() == other.to_string()
    }
}

impl Eq for PageError {}

impl Error for PageError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0.cause {
            Cause::Source(cause) => Some(&**cause),
            Cause::Damaged(_) => None,
        }
    }
}
