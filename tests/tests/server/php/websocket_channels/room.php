<?php
$event = \Howdah\WebSocket::event();
if ($event?->type === 'open') {
    $event->send('welcome');
    $event->subscribe('room', $_GET['after'] ?? null);
} elseif ($event === null) {
    try {
        \Howdah\WebSocket::publish('room', $_GET['text'], id: $_GET['id'] ?? null);
        echo 'published';
    } catch (ValueError $error) {
        echo $error->getMessage();
    }
}
