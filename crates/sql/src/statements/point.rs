//! Running a statement that touches a row by its key.
use arrow_schema::SchemaRef;
use engine::{ScanOptions, Table, Value};

use crate::error::Result;
use crate::point::bound::Bound;
use crate::point::term::Origin;
use crate::point::{Action, Point};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Command, Outcome, Rows};

impl Point {
    /// Runs it with values for its parameters; `None` if it has to go the long way, and nothing was done.
    pub(crate) fn run(&self, session: &mut Session, values: &[Value]) -> Result<Option<Outcome>> {
        let bound = Bound { values, now: session.now };
        let done = match &self.action {
            Action::Select { key, columns, schema } => return self.select(session, &bound, key, columns, schema),
            Action::Update { key, sets, reads } => session.write("UPDATE", |_, write| {
                let (Some(table), Some(key)) = (self.find(write)?, bound.key(key)) else { return Ok(None) };
                let updated = if reads.is_empty() {
                    let Some(changes) = bound.changes(sets, &[]) else { return Ok(None) };
                    Some(write.transaction.update_columns(&table, &key, &changes)?)
                } else {
                    let compute = |read: &[Value]| bound.changes(sets, read);
                    write.transaction.update_computed(&table, &key, reads, compute)?
                };
                Ok(updated.map(|updated| format!("UPDATE {}", u64::from(updated))))
            }),
            Action::Delete { key } => session.write("DELETE", |_, write| {
                let (Some(table), Some(key)) = (self.find(write)?, bound.key(key)) else { return Ok(None) };
                Ok(Some(format!("DELETE {}", u64::from(write.transaction.delete(&table, &key)?))))
            }),
            Action::Insert { rows } => session.write("INSERT", |_, write| {
                let Some(table) = self.find(write)? else { return Ok(None) };
                let Some(values) = rows.iter().map(|row| bound.row(row)).collect::<Option<Vec<_>>>() else {
                    return Ok(None);
                };
                for row in &values {
                    write.transaction.insert(&table, row)?;
                }
                Ok(Some(format!("INSERT 0 {}", values.len())))
            }),
        };
        Ok(done?.map(|tag| Command::new(tag).into()))
    }

    fn select(
        &self,
        session: &mut Session,
        bound: &Bound<'_>,
        key: &[Origin],
        columns: &[usize],
        schema: &SchemaRef,
    ) -> Result<Option<Outcome>> {
        let Some(key) = bound.key(key) else { return Ok(None) };
        // The moment first: the table is to be the one that its rows belong to.
        let moment = session.moment()?;
        let table = session.db.table_seen(moment.view(), &self.table).ok().filter(|table| table.id() == self.id);
        let Some(table) = table else { return Ok(None) };
        let options = ScanOptions { columns: columns.to_vec(), ..ScanOptions::default() };
        let rows = Rows::ready(table.lookup(moment.view(), &key, &options)?).renamed(schema.clone());
        Ok(Some(Outcome::Rows(rows)))
    }

    /// The table that it is about, if that still has its name.
    fn find(&self, write: &mut Write<'_>) -> Result<Option<Table>> {
        match write.transaction.table_to_write(&self.table) {
            Ok(table) => Ok(Some(table).filter(|table| table.id() == self.id)),
            Err(engine::Error::NoSuchTable(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
