//! Log records, metrics and spans for functions of the host program.

use std::sync::Arc;

use serde::Serialize;
use tracing::Dispatch;

use crate::base::telemetry::log::{self, Sink};
use crate::base::telemetry::{Metric, Observer, SpanRecord};

use super::host::{FunctionId, Host};

/// The functions that were given.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObserverTable {
    pub logger: Option<FunctionId>,
    pub on_metric: Option<FunctionId>,
    pub telemetry: Option<FunctionId>,
    /// Whether log records go to standard error.
    pub debug: bool,
}

struct HostObserver {
    table: ObserverTable,
    host: Arc<dyn Host>,
}

impl Observer for HostObserver {
    fn metric(&self, metric: &Metric) {
        notify(&self.host, self.table.on_metric, metric);
    }

    fn span(&self, span: &SpanRecord) {
        notify(&self.host, self.table.telemetry, span);
    }
}

fn notify(host: &Arc<dyn Host>, function: Option<FunctionId>, value: &impl Serialize) {
    if let Some(function) = function {
        host.notify(function, serde_json::to_value(value).unwrap_or_default());
    }
}

impl ObserverTable {
    /// Who receives metrics and spans, if anybody does.
    pub fn observer(self, host: &Arc<dyn Host>) -> Option<Arc<dyn Observer>> {
        let wanted = self.on_metric.is_some() || self.telemetry.is_some();
        wanted.then(|| {
            Arc::new(HostObserver {
                table: self,
                host: host.clone(),
            }) as Arc<dyn Observer>
        })
    }

    /// Who receives log records, if anybody does.
    pub fn dispatch(self, host: &Arc<dyn Host>) -> Option<Dispatch> {
        let mut sinks: Vec<Sink> = Vec::new();
        if self.debug {
            sinks.push(Arc::new(log::to_stderr));
        }
        if self.logger.is_some() {
            let (host, logger) = (host.clone(), self.logger);
            sinks.push(Arc::new(move |record| notify(&host, logger, record)));
        }
        (!sinks.is_empty()).then(|| log::dispatch(sinks))
    }
}
