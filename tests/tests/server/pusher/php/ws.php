<?php
// Sends every message back. Refuses on request, and closes after `leave`.
$event = Howdah\WebSocket::event();
if (isset($_GET['refuse'])) {
    http_response_code(418);
} elseif ($event->type === 'message') {
    match ($event->data) {
        'leave' => $event->close(4000, 'bye'),
        default => $event->send($event->data, $event->binary),
    };
}
