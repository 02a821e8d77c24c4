<?php
$event = \Howdah\WebSocket::event();
if ($event?->type === 'open') {
    $event->setState($_GET['name']);
    foreach (explode(',', $_GET['rooms'] ?? '') as $room) {
        if ($room !== '') {
            $event->subscribe($room);
        }
    }
    $event->send("welcome $event->connection");
    return;
}
if ($event?->type === 'message') {
    if ($event->data === 'bye') {
        $event->close();
    }
    $event->send(json_encode([\Howdah\WebSocket::exists($event->connection), \Howdah\WebSocket::count()]));
    return;
}
if ($event?->type === 'close') {
    file_put_contents(__DIR__ . '/closed', var_export(\Howdah\WebSocket::exists($event->connection), true) . "\n", FILE_APPEND);
    return;
}
$names = static function (?string $room): array {
    $names = array_values(\Howdah\WebSocket::connections($room));
    sort($names);
    return $names;
};
$room = $_GET['room'] ?? null;
echo json_encode([\Howdah\WebSocket::count($room), $names($room)]);
if (isset($_GET['id'])) {
    $before = \Howdah\WebSocket::exists($_GET['id']);
    if (isset($_GET['end'])) {
        \Howdah\WebSocket::close($_GET['id']);
    }
    echo json_encode([$before, \Howdah\WebSocket::exists($_GET['id'])]);
}
