//! Columns of a table as they are read and set by key, under the name that the table was found by.
use engine::PointAccess;
use sql::Session;

/// See the module.
pub(crate) struct Access {
    point: PointAccess,
    name: String,
    /// How often the table's settings had changed: what fills its columns.
    settings_changes: u64,
}

impl Access {
    /// The access, for as long as its table is called and filled as it is now.
    pub(crate) fn new(point: PointAccess) -> Access {
        let (name, settings_changes) = (point.table().name().to_owned(), point.table().settings_changes());
        Access { point, name, settings_changes }
    }

    /// The columns.
    pub(crate) fn point(&self) -> &PointAccess {
        &self.point
    }

    /// Whether nobody has given the table another name.
    fn has_its_name(&self) -> bool {
        self.point.table().name() == self.name
    }

    /// Puts the words of a row as it was committed last into `words`; which of them are NULL, a bit each. `None` where a statement is to
    /// find it: an error comes again there.
    pub(crate) fn newest(&self, session: &Session, key: i64, words: &mut [u64]) -> Option<u64> {
        if !session.is_bare() {
            return None;
        }
        let nulls = self.point.newest(key, words).ok().flatten();
        // Asked afterwards: it had the name before, too.
        nulls.filter(|_| self.has_its_name())
    }

    /// Sets the columns of a row in a transaction of its own that waits for nothing; whether there is one. `None` where a statement has
    /// to, and nothing was done: an error comes again there.
    ///
    /// # Errors
    /// What the log fails with, after which the commit is uncertain.
    pub(crate) fn change(&self, session: &Session, key: i64, words: &[u64]) -> Result<Option<bool>, engine::Error> {
        let Some(options) = session.options_at_once() else { return Ok(None) };
        let Ok(mut transaction) = session.database().begin_with(options) else { return Ok(None) };
        let Ok(found) = transaction.update_words(&self.point, key, words) else { return Ok(None) };
        // Neither changes any more, as the table is written to.
        let is_as_noted = self.has_its_name() && self.point.table().settings_changes() == self.settings_changes;
        if !is_as_noted || transaction.end_statement().is_err() {
            return Ok(None);
        }
        match transaction.commit() {
            Ok(_) => Ok(Some(found)),
            // The commit may be on disk.
            Err(error @ engine::Error::Log(_)) => Err(error),
            Err(_) => Ok(None),
        }
    }
}
