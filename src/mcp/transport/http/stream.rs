//! Event streams, opened again where they broke off.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};

use crate::base::sse::SseEvent;
use crate::error::Result;
use crate::mcp::transport::web::{Ask, Asked, EVENT_STREAM, Events, content_type, messages_in};

use super::link::{Call, Link, answered};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// A server that wants to be asked again at once is asked after this time.
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// Where a stream is, for the next time it is opened.
#[derive(Default)]
struct Place {
    last_id: Option<String>,
    retry_ms: Option<u64>,
    /// Attempts in a row that brought nothing.
    failures: u32,
}

impl Place {
    fn note(&mut self, event: &SseEvent) {
        self.failures = 0;
        if let Some(id) = &event.id {
            self.last_id = Some(id.clone());
        }
        self.retry_ms = event.retry_ms.or(self.retry_ms);
    }
}

impl Link {
    /// Reads the stream of a request up to its answer.
    pub async fn follow(&self, call: &Call<'_>, mut events: Events) -> Result<()> {
        let mut place = Place::default();
        loop {
            let broken = match self.read_answer(call, &mut events, &mut place).await {
                Ok(true) => return Ok(()),
                Ok(false) => self
                    .endpoint
                    .misread("ended the stream of a request before its answer"),
                Err(error) => error,
            };
            // Without an id the rest of the stream cannot be asked for.
            let can_go_on = place.last_id.is_some() && place.failures < self.limits.attempts;
            if !can_go_on || !broken.is_retryable() {
                return Err(broken);
            }
            drop(events);
            events = self.open_again(&mut place).await?;
        }
    }

    async fn read_answer(
        &self,
        call: &Call<'_>,
        events: &mut Events,
        place: &mut Place,
    ) -> Result<bool> {
        while let Some(event) = events.next().await? {
            place.note(&event);
            if self.take(call, messages_in(&event)).await {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn open_again(&self, place: &mut Place) -> Result<Events> {
        loop {
            self.pause(place).await;
            place.failures += 1;
            match self.open(place, None).await {
                Ok(events) => return Ok(events),
                Err(error) if error.is_retryable() && place.failures < self.limits.attempts => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads what the server says on its own, until the connection ends or the server has no such
    /// stream.
    pub fn start_listening(self: &Arc<Self>) {
        let link = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = link.outlet.ended() => {}
                () = link.listen() => {}
            }
        });
    }

    async fn listen(&self) {
        let mut place = Place::default();
        loop {
            place.failures += 1;
            let read = match self.open(&place, Some(self.limits.stall)).await {
                Ok(events) => self.read_all(events, &mut place).await,
                Err(error) => Err(error),
            };
            if read.is_err_and(|error| !error.is_retryable()) {
                return;
            }
            self.pause(&place).await;
        }
    }

    async fn read_all(&self, mut events: Events, place: &mut Place) -> Result<()> {
        while let Some(event) = events.next().await? {
            place.note(&event);
            for message in messages_in(&event) {
                let id = answered(&message).cloned();
                self.outlet.deliver(message).await;
                if let Some(id) = id {
                    self.stop_waiting(&id);
                }
            }
        }
        Ok(())
    }

    /// Opens the stream of the server, from where an earlier one broke off.
    async fn open(&self, place: &Place, stall: Option<Duration>) -> Result<Events> {
        let mut headers = self.headers(EVENT_STREAM);
        let id = place.last_id.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(id)) = id {
            headers.insert(LAST_EVENT_ID, id);
        }
        let ask = Ask {
            method: Method::GET,
            url: self.endpoint.url().clone(),
            headers,
            body: None,
        };
        // Some servers send the headers with the first event.
        let limit = self.limits.stall;
        let response = self.endpoint.send_soon(ask, limit, Asked::Stream).await?;
        if content_type(&response) == EVENT_STREAM {
            return Ok(self.events(response, stall));
        }
        let error = self.endpoint.misread("opened no event stream");
        Err(error.with_retryable(false))
    }

    async fn pause(&self, place: &Place) {
        let asked = place.retry_ms.map(Duration::from_millis);
        let delay = self.limits.backoff.delay(place.failures.max(1), asked);
        tokio::time::sleep(delay.max(LEAST_WAIT)).await;
    }
}
