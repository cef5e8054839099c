//! A stream of which several partitions take items, each the next one when it has done with the last.
//!
//! Whichever partition is asked first drives the stream, and no partition holds it between two questions: one that is asked no more, or
//! dropped, holds up none of the others.
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};

use datafusion::error::Result;
use futures::stream::{Fuse, StreamExt};
use futures::{Stream, stream};

type Items<T> = Fuse<stream::BoxStream<'static, Result<T>>>;

/// The stream, and the partitions that wait for it.
pub(super) struct Dealt<T> {
    items: Mutex<Items<T>>,
    waiting: Arc<Waiting>,
}

/// A waker a partition.
#[derive(Default)]
struct Waiting(Mutex<Vec<Option<Waker>>>);

impl Waiting {
    fn add(&self, partition: usize, waker: &Waker) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() <= partition {
            waiting.resize(partition + 1, None);
        }
        waiting[partition] = Some(waker.clone());
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl<T: Send + 'static> Dealt<T> {
    pub(super) fn new(items: impl Stream<Item = Result<T>> + Send + 'static) -> Arc<Dealt<T>> {
        Arc::new(Dealt { items: Mutex::new(items.boxed().fuse()), waiting: Arc::default() })
    }

    /// The items that a partition gets.
    pub(super) fn items(self: Arc<Self>, partition: usize) -> impl Stream<Item = Result<T>> + Send + 'static {
        stream::poll_fn(move |context| self.poll(partition, context))
    }

    fn poll(&self, partition: usize, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        // Before the look: the partition that drives the stream now wakes all that wait when it has done.
        self.waiting.add(partition, context.waker());
        let mut items = match self.items.try_lock() {
            Ok(items) => items,
            Err(TryLockError::Poisoned(items)) => items.into_inner(),
            Err(TryLockError::WouldBlock) => return Poll::Pending,
        };
        let all = Waker::from(self.waiting.clone());
        let next = items.poll_next_unpin(&mut Context::from_waker(&all));
        drop(items);
        if next.is_ready() {
            all.wake();
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures::executor::block_on;

    use super::*;

    #[test]
    fn each_item_goes_to_one_partition_also_where_one_is_asked_no_more() {
        let (given, seen) = (1..=2_000u64, Arc::new(AtomicU64::new(0)));
        // Some items are not there at once: their waker has to reach a partition that is still asked. Others keep the partition that drives
        // the stream so long that the rest come in vain, and have to be told when it has done.
        let items = stream::iter(given.clone()).then(|item| async move {
            let mut is_late = item % 3 == 0;
            futures::future::poll_fn(move |context| {
                if std::mem::take(&mut is_late) {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                if item % 5 == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(50));
                }
                Poll::Ready(Ok(item))
            })
            .await
        });
        let dealt = Dealt::new(items);
        let mut left = Box::pin(dealt.clone().items(0));
        let noop = futures::task::noop_waker();
        for _ in 0..5 {
            if let Poll::Ready(Some(item)) = left.poll_next_unpin(&mut Context::from_waker(&noop)) {
                seen.fetch_add(item.unwrap(), Ordering::Relaxed);
            }
        }
        std::thread::scope(|scope| {
            for partition in 1..4 {
                let (dealt, seen) = (dealt.clone(), seen.clone());
                scope.spawn(move || {
                    let mut items = Box::pin(dealt.items(partition));
                    while let Some(item) = block_on(items.next()) {
                        seen.fetch_add(item.unwrap(), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(seen.load(Ordering::Relaxed), given.sum::<u64>());
    }

    #[test]
    fn an_error_goes_to_one_partition_and_ends_the_stream() {
        let failed = || datafusion::error::DataFusionError::Internal("no more".into());
        let dealt = Dealt::new(stream::iter([Ok(1), Err(failed())]));
        let [mut one, mut other] = [0, 1].map(|partition| Box::pin(dealt.clone().items(partition)));
        assert_eq!(block_on(one.next()).unwrap().unwrap(), 1);
        assert!(block_on(other.next()).unwrap().is_err());
        assert!(block_on(one.next()).is_none() && block_on(other.next()).is_none());
    }
}
