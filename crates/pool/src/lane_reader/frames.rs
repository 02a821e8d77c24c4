//! Interprets a worker's frames. A worker may send anything: an error means that it broke the protocol, and its lane is
//! then broken too.

use super::{LaneReader, worker_log};
use crate::fault::{Fault, FaultKind};
use crate::lane::{BodyToSend, SnapshotWork};
use crate::lane_reader::handle::RequestedBody;
use crate::request::estimate::MeasuredDuration;
use crate::response::head::{HeadParts, HeaderLines, ResponseHead};
use crate::response::sink::SinkState;
use bytes::Bytes;
use howdah_transport::Frame;
use howdah_transport::control_socket::ControlSocket;
use howdah_transport::live_order::{LiveKind, LiveOrder, MAX_LIVE_ORDER};
use howdah_transport::wire::{FLAG_FLUSH, FLAG_MORE, FrameKind, WireDone};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::Instant;
use zerocopy::FromBytes;

impl LaneReader {
    /// Handles one frame. An error means that the worker broke the protocol.
    pub(super) fn take(&mut self, frame: Frame) -> Result<(), String> {
        match frame.kind {
            FrameKind::Ready if std::mem::replace(&mut self.ready, true) => return Err("reported ready twice".into()),
            FrameKind::Ready => {
                self.log.booted(&self.lane);
                self.lane.worker_ready();
                return Ok(());
            }
            FrameKind::Log => {
                if !self.log.line(&self.lane, &frame, !self.ready, self.now) {
                    self.waste.note(self.is_idle());
                }
                return Ok(());
            }
            FrameKind::NeedBody => return self.give_body(frame.number),
            FrameKind::NeedStatus => return self.give_status(frame.number),
            FrameKind::GiveBack => {
                let began =
                    u64::read_from_bytes(&frame.payload).map_err(|_| "gave a request back with a malformed frame")?;
                return self.lane.request_given_back(frame.number, began);
            }
            FrameKind::Request | FrameKind::Stop | FrameKind::Cancel | FrameKind::Pad => {
                return Err("sent a frame that only the server may send".into());
            }
            _ => {}
        }
        if self.open.current.as_ref().is_none_or(|current| current.number != frame.number) {
            self.open.turn_to(frame.number, || self.lane.begin_request(frame.number))?;
        }
        let Some(current) = self.open.current.as_mut() else { return Ok(()) };
        current.order.note(frame.kind, frame.flags & FLAG_MORE != 0)?;
        match frame.kind {
            FrameKind::Head => self.take_head(frame)?,
            FrameKind::Body => self.take_body(frame),
            FrameKind::End => {
                // If PHP continues after its response, the access log gets these values.
                let micros = |from: Instant, to: Instant| to.saturating_duration_since(from).as_micros() as u64;
                let (received, since, now) = (current.received, current.since.max(current.received), self.now);
                current.sink.update_stats(|stats| {
                    stats.queue_us = micros(received, since);
                    stats.php_us = micros(since, now);
                });
                current.sink.end();
                current.ended = true;
                current.unseen = true;
            }
            FrameKind::Done => self.done(&frame.payload)?,
            FrameKind::Interim => self.take_interim(frame)?,
            FrameKind::Live => self.take_live(frame)?,
            _ => {}
        }
        Ok(())
    }

    /// Sends the worker the body of a request that it has begun.
    fn give_body(&mut self, number: u64) -> Result<(), String> {
        let Some(RequestedBody { body, control, sink }) = self.lane.requested_body(number)? else {
            return Ok(());
        };
        let sent = body.and_then(|body| body.into_descriptor()).and_then(|fd| control.send_body(number, fd.as_fd()));
        let error = match sent {
            Ok(()) => {
                if self.open.are_multiplexed() {
                    self.lane.message_sent();
                }
                return Ok(());
            }
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::WouldBlock => return Err("did not receive request bodies that it had requested".into()),
            // The worker has died, which the reader will notice shortly.
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected => return Ok(()),
            _ => {}
        }
        sink.fail(Fault::storage("cannot send a request body", &error));
        // The worker waits for an answer.
        control.send_no_body(number).map_err(|error| format!("could not be notified of a missing body: {error}"))?;
        if self.open.are_multiplexed() {
            self.lane.message_sent();
        }
        Ok(())
    }

    /// Sends the worker its pool's status. Counts as waste, which is limited.
    fn give_status(&mut self, number: u64) -> Result<(), String> {
        self.waste.note(self.is_idle());
        let Some((text, control)) = self.lane.requested_status(number)? else { return Ok(()) };
        send_text(&control, number, text.into()).map_err(|error| format!("could not get its pool's status: {error}"))
    }

    /// Answers a question about connections. One that may take long counts as waste.
    fn give_result(&mut self, number: u64, question: &LiveOrder) -> Result<(), String> {
        if question.kind() != LiveKind::Exists {
            self.waste.note(false);
        }
        let Some(control) = self.lane.text_wanted(number)? else { return Ok(()) };
        let found = self.lane.live_front(number).map_or_else(Vec::new, |front| front.ask(question));
        let sent = send_text(&control, number, found.into());
        sent.map_err(|error| format!("could not get an answer about connections: {error}"))?;
        if self.open.are_multiplexed() {
            self.lane.message_sent();
        }
        Ok(())
    }

    /// Adds a frame of the current response's head.
    fn take_head(&mut self, frame: Frame) -> Result<(), String> {
        let Some(current) = self.open.current.as_mut() else { return Ok(()) };
        let Some(head) = current.head.add(frame.payload, frame.flags & FLAG_MORE != 0) else { return Ok(()) };
        let number = current.number;
        match head {
            ResponseHead::Good(status, headers, route) => {
                if let Some(route) = route {
                    current.sink.set_route(route);
                }
                let is_final = (200..=599).contains(&status);
                current.sink.set_head(if is_final { status } else { 500 }, headers);
                current.unseen = true;
                if !is_final {
                    worker_log::note(
                        &self.lane,
                        number,
                        &format!("PHP set status {status}, which is not a final status: answering 500"),
                    );
                }
            }
            ResponseHead::TooLong => {
                // Further frames are dropped. Scripts can cause this, so the worker is not broken.
                let what = "the response has more than 1000 header lines, or 1 MiB of them";
                current.sink.fail(Fault::with(FaultKind::WorkerBroken, what));
                current.ended = true;
                worker_log::note(&self.lane, number, &format!("{what}: answering 502"));
            }
            ResponseHead::Malformed => return Err("sent a malformed head".into()),
        }
        Ok(())
    }

    /// Adds a frame of an informational response. Excess ones, and those without a receiver, are dropped.
    fn take_interim(&mut self, frame: Frame) -> Result<(), String> {
        let Some(current) = self.open.current.as_mut() else { return Ok(()) };
        let more = frame.flags & FLAG_MORE != 0;
        let takes = current.order.takes_interim(frame.payload.len(), more);
        if !takes || current.ended || current.sink.is_gone() {
            // All frames of an informational response are dropped together: a part of one cannot be parsed.
            current.head = HeadParts::default();
            self.waste.note(false);
            return Ok(());
        }
        let number = current.number;
        match current.head.add(frame.payload, more) {
            None | Some(ResponseHead::TooLong) => {}
            Some(ResponseHead::Good(status, headers, _)) => self.pass_interim(number, status, &headers),
            Some(ResponseHead::Malformed) => return Err("sent a malformed informational response".into()),
        }
        Ok(())
    }

    /// Adds a frame of an order for connections and channels. The last frame passes the order to the request's site.
    fn take_live(&mut self, Frame { payload, number, flags, .. }: Frame) -> Result<(), String> {
        if self.live_parts.len() + payload.len() > MAX_LIVE_ORDER {
            return Err("sent an order for connections that is too long".into());
        }
        self.live_parts.extend_from_slice(&payload);
        if flags & FLAG_MORE != 0 {
            return Ok(());
        }
        let order = LiveOrder::parse(std::mem::take(&mut self.live_parts).into());
        let order = order.ok_or("sent a malformed order for connections")?;
        if order.kind().is_question() {
            return self.give_result(number, &order);
        }
        match self.lane.live_front(number) {
            Some(front) => front.take(order),
            None => {
                self.waste.note(false);
                let what = "the site has neither WebSocket connections nor a Mercure hub: dropping the message";
                worker_log::note(&self.lane, number, what);
            }
        }
        Ok(())
    }

    fn pass_interim(&self, number: u64, status: u16, headers: &HeaderLines) {
        if let Some(front) = self.lane.interim_front(number) {
            front.interim(status, headers);
        }
    }

    /// Adds to the body of the current request's response.
    fn take_body(&mut self, frame: Frame) {
        let multiplexed = self.open.are_multiplexed();
        let Some(current) = self.open.current.as_mut() else { return };
        let flush = frame.flags & FLAG_FLUSH != 0;
        let empty = frame.held.is_none() && frame.payload.is_empty();
        let mut after = SinkState { gone: false, overfull: false };
        if !current.order.is_useful(empty, flush) {
            self.waste.note(false);
        } else if current.ended {
            after.gone = current.sink.is_gone();
        } else {
            after = match frame.held {
                // Flushed data may be sent in parts.
                Some(held) if flush => current.sink.push(Bytes::from(held.copy_from(0)), flush),
                Some(held) => current.sink.push_held(held).unwrap_or_else(|| {
                    self.holding.push(current.sink.clone());
                    after
                }),
                None => current.sink.push(Bytes::from(frame.payload), flush),
            };
            current.unseen = true;
        }
        // A serial worker waits for a slow client; a multiplexed one must not, so its response is failed.
        if multiplexed && after.overfull {
            if current.sink.lacks_budget() {
                current.sink.give_up(Fault::with(
                    FaultKind::OverBudget,
                    "no room for the response in http.memory or http.spool",
                ));
            } else {
                let fault = Fault::with(FaultKind::Storage, "the client is too slow: the response's file is full");
                current.sink.fail(fault);
            }
            current.ended = true;
            self.lane.abort_request(frame.number);
        }
        self.overfull = after.overfull && !multiplexed;
        if after.gone {
            self.lane.abort_request(frame.number);
        }
    }

    fn done(&mut self, payload: &[u8]) -> Result<(), String> {
        let Some(current) = self.open.current.take() else { return Ok(()) };
        self.waste.something_done();
        let done = WireDone::read_from_bytes(payload).map_err(|_| "sent a malformed end of a request")?;
        let micros = self.now.saturating_duration_since(current.received).as_micros() as u64;
        let php_us = done.php_ns / 1000;
        current.sink.update_stats(|stats| {
            stats.php_us = php_us;
            stats.queue_us = micros.saturating_sub(php_us);
            stats.cpu_us = done.cpu_ns / 1000;
            stats.system_us = done.system_ns / 1000;
            stats.peak_memory = done.peak_memory;
        });
        self.lane.metrics().queue_wait.observe_us(micros.saturating_sub(php_us));
        if current.cold {
            self.lane.note_cold_start(micros.saturating_sub(php_us));
        }
        if !current.ended {
            current.sink.fail(Fault::with(FaultKind::WorkerBroken, "the worker ended the request without a response"));
        } else if current.unseen {
            current.sink.wake();
        }
        self.lane.metrics().sessions_reset.add(u64::from(done.resets()));
        self.lane.metrics().workers_unfit.add(u64::from(done.is_unfit()));
        let snapshot = SnapshotWork::of(&done);
        let cpu = (done.cpu_ns > 0).then_some(done.cpu_ns / 1000);
        let took = MeasuredDuration { php: php_us, cpu, memory: done.peak_memory };
        self.lane.request_done(current.number, self.now, took, done.retires(), snapshot);
        Ok(())
    }
}

/// Sends a worker the text that a request waits for.
fn send_text(control: &ControlSocket, number: u64, text: Bytes) -> std::io::Result<()> {
    let file = BodyToSend::Memory(text).into_descriptor();
    match file.and_then(|file| control.send_text(number, file.as_fd())) {
        // The worker has died, which the reader will notice shortly.
        Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(()),
        sent => sent,
    }
}
