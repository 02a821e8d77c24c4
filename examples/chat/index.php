<?php
/**
 * A chat in one file: the page, and the events of its WebSocket connections.
 */

use Howdah\WebSocket;
use Howdah\WebSocketEvent;

/** Sends a line to every connection of the room. */
function say(string $room, string $name, string $text): void
{
    WebSocket::publish("room:$room", json_encode(['name' => $name, 'text' => $text, 'time' => time()]));
}

function handle(WebSocketEvent $event): void
{
    // The connection's state is the visitor's name, once it is known.
    $name = $event->state;
    $room = $_GET['room'] ?? 'lobby';
    switch ($event->type) {
        case 'open':
            if (!preg_match('/^\w{1,32}$/', $room)) {
                http_response_code(400);
                return;
            }
            $event->subscribe("room:$room");
            break;
        case 'message':
            $message = json_decode($event->data, true);
            if (is_string($message['name'] ?? null)) {
                $name = mb_substr(trim($message['name']), 0, 40) ?: 'guest';
                $event->setState($name);
                say($room, $name, 'has joined');
            } elseif ($name !== '' && is_string($message['text'] ?? null)) {
                say($room, $name, mb_substr($message['text'], 0, 1000));
            }
            break;
        case 'close':
            if ($name !== '') {
                say($room, $name, 'has left');
            }
            break;
    }
}

$event = WebSocket::event();
if ($event !== null) {
    handle($event);
    return;
}
?>
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Chat</title>
<ul id="lines"></ul>
<form>
    <input name="line" placeholder="Your name" autocomplete="off" autofocus>
    <button>Send</button>
</form>
<script>
    const form = document.querySelector('form'), lines = document.querySelector('#lines');
    let socket, name, wait = 500;

    function connect() {
        const room = new URLSearchParams(location.search).get('room') ?? 'lobby';
        socket = new WebSocket(`${location.protocol.replace('http', 'ws')}//${location.host}/ws?room=${encodeURIComponent(room)}`);
        socket.onopen = () => {
            wait = 500;
            if (name) socket.send(JSON.stringify({name}));
        };
        socket.onmessage = ({data}) => {
            const said = JSON.parse(data), item = document.createElement('li');
            item.textContent = `${said.name}: ${said.text}`;
            lines.append(item);
        };
        // Random delays, so that clients do not all reconnect at once; longer ones while the server is down.
        socket.onclose = () => setTimeout(connect, Math.random() * (wait = Math.min(wait * 2, 30000)));
    }

    form.onsubmit = (event) => {
        event.preventDefault();
        const text = form.line.value;
        form.reset();
        if (!name) {
            name = text;
            form.line.placeholder = 'Your message';
            socket.send(JSON.stringify({name}));
        } else {
            socket.send(JSON.stringify({text}));
        }
    };
    connect();
</script>
