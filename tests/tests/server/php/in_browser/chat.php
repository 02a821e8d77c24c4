<?php
$event = \Howdah\WebSocket::event();
if ($event?->type === 'message') {
    $event->data === 'bye' ? $event->close(4000, 'enough') : $event->send("you said: $event->data");
}
