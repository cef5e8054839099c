//! The collation that a column of texts is given by its name.
use serde::{Deserialize, Serialize};

/// A collation: a name, and the language whose order texts have by it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Collation {
    /// its name, as `de-x-icu` or `C`
    pub name: String,
    /// the language as a tag of BCP 47; none where texts are ordered by their bytes
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
}
