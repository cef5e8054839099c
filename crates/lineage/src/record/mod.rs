//! Records of a range: finding the version that a snapshot sees, appending one, moving merged ones to history.
pub(crate) mod append;
pub(crate) mod archive;
pub(crate) mod forward;
pub(crate) mod hold;
pub(crate) mod indirection;
pub(crate) mod last_image;
pub(crate) mod late_past;
pub(crate) mod point;
pub(crate) mod prefetch;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod running;
pub(crate) mod stamp;
pub(crate) mod view;
pub(crate) mod write;
