<?php
$event = \Howdah\WebSocket::event();
if ($event === null) {
    if (isset($_GET['count'])) {
        echo \Howdah\WebSocket::count($_GET['count']);
        return;
    }
    if (isset($_GET['publish'])) {
        \Howdah\WebSocket::publish($_GET['publish'], $_GET['text'] ?? str_repeat('x', (int) $_GET['long']));
    }
    if (isset($_GET['to'])) {
        \Howdah\WebSocket::send($_GET['to'], 'from another request');
    }
    if (isset($_GET['close'])) {
        \Howdah\WebSocket::close($_GET['close'], 3000, 'by another request');
    }
    echo 'no event';
    return;
}
require_once 'gate.php';
switch ($event->type) {
    case 'open':
        if (isset($_GET['refuse'])) {
            http_response_code((int) $_GET['refuse']);
            return;
        }
        setcookie('seen', 'yes');
        header('Sec-WebSocket-Protocol: chat');
        $event->setState('0');
        if (isset($_GET['room'])) {
            $event->subscribe($_GET['room'], keep: isset($_GET['keep']) ? (int) $_GET['keep'] : null);
        }
        $event->send("welcome $event->connection");
        break;
    case 'message':
        $event->setState((string) ($event->state + 1));
        if ($event->data === 'leave') {
            $event->unsubscribe($_GET['room']);
        } elseif ($event->data === 'wait') {
            gate('g');
        } elseif ($event->data === 'bye') {
            $event->close(4000, 'bye');
            return;
        } elseif ($event->data === 'crash') {
            no_such_function();
        } elseif ($event->data === 'refuse') {
            http_response_code(403);
            return;
        } elseif ($event->data === 'die') {
            posix_kill(getmypid(), SIGKILL);
        }
        $length = strlen($event->data);
        $event->send($length > 100 ? (string) $length : "$event->state $event->data {$_COOKIE['id']}", $event->binary);
        break;
    case 'close':
        file_put_contents(__DIR__ . '/closed', "$event->code $event->state $event->data\n", FILE_APPEND | LOCK_EX);
        break;
}
