//! Room in memory: which models have to go for another.

use std::sync::{Arc, PoisonError};

use audiocpp::engine::{Error, ErrorClass, package::human_bytes};

use super::{
    House,
    seat::Seat,
    served::{Held, Patience, Served},
};
use crate::job::Refusal;

impl House {
    /// A place for one more process of `served`. Models that were not used for longest are unloaded
    /// for it; if all are at work, it waits.
    ///
    /// # Errors
    /// The model alone is beyond the budget ([`Refusal::Load`]), or the wait is over.
    pub async fn make_room(
        &self,
        served: &Arc<Served>,
        patience: &Patience,
    ) -> Result<Seat, Refusal> {
        let measured = served.lock().measured;
        let need = measured.unwrap_or_else(|| served.plan.spec.package.bytes());
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            match self.try_room(served, need) {
                Ok(seat) => return Ok(seat),
                Err(Some((other, held))) => self.unload_for_room(&other, held).await,
                Err(None) => {
                    self.refuse_giants(served, need)?;
                    patience.wait_for(served, freed).await?;
                }
            }
        }
    }

    /// A place, or the process that has to go first; none of both if all are at work.
    fn try_room(
        &self,
        served: &Arc<Served>,
        need: u64,
    ) -> Result<Seat, Option<(Arc<Served>, Held)>> {
        let _room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = self
            .memory_budget
            .is_none_or(|budget| self.bytes().saturating_add(need) <= budget);
        if fits {
            return Ok(served.seats.take(need, self.freed.clone()));
        }
        Err(self.pop_oldest())
    }

    /// A model that does not fit even where nothing else is.
    fn refuse_giants(&self, served: &Served, need: u64) -> Result<(), Refusal> {
        let budget = self.memory_budget.unwrap_or(u64::MAX);
        let alone = self.models.iter().all(|model| model.seats.count() == 0);
        if need <= budget && !alone {
            return Ok(());
        }
        let (need, budget) = (human_bytes(need), human_bytes(budget));
        let message = format!("it needs {need}, and memory_budget_mb allows {budget}");
        Err(Refusal::Load {
            model: served.id().to_owned(),
            error: Error::new(ErrorClass::OutOfMemory, message),
        })
    }

    /// Unloads idle models, the one that was not used for longest first, until all workers are
    /// within the budget. The last one stays.
    pub async fn keep_budget(&self) {
        let Some(budget) = self.memory_budget else {
            return;
        };
        let processes = || {
            self.models
                .iter()
                .map(|model| model.seats.count())
                .sum::<usize>()
        };
        while self.bytes() > budget && processes() > 1 {
            let Some((served, held)) = self.pop_oldest() else {
                return;
            };
            self.unload_for_room(&served, held).await;
        }
    }

    async fn unload_for_room(&self, served: &Served, held: Held) {
        tracing::info!(model = served.id(), "unloaded: others need the memory");
        served.meter.unloaded("memory");
        held.end().await;
    }

    fn bytes(&self) -> u64 {
        self.models.iter().map(|model| model.seats.bytes()).sum()
    }

    fn pop_oldest(&self) -> Option<(Arc<Served>, Held)> {
        let idle = self.models.iter();
        let oldest = idle
            .filter_map(|model| Some((model.idle_since()?, model)))
            .min_by_key(|(since, _)| *since)?;
        Some((oldest.1.clone(), oldest.1.pop_oldest()?))
    }
}
