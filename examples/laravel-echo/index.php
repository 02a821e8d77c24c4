<?php
/**
 * A room in one file: the page, the signature that lets a visitor into the room, and the event that a form publishes.
 */

const APP = 'example';
const KEY = 'example-key';
const SECRET = 'example-secret';

/** Publishes an event, as pusher-php-server does. */
function publish(string $channel, string $event, array $data, string $except): void
{
    $body = json_encode(['name' => $event, 'channels' => [$channel], 'data' => json_encode($data), 'socket_id' => $except]);
    $path = '/apps/' . APP . '/events';
    $query = http_build_query([
        'auth_key' => KEY,
        'auth_timestamp' => time(),
        'auth_version' => '1.0',
        'body_md5' => md5($body),
    ]);
    $signature = hash_hmac('sha256', "POST\n$path\n$query", SECRET);
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => 'Content-Type: application/json',
        'content' => $body,
    ]]);
    file_get_contents("http://127.0.0.1:{$_SERVER['SERVER_PORT']}$path?$query&auth_signature=$signature", false, $context);
}

session_start();
$name = $_SESSION['name'] ??= 'guest-' . random_int(100, 999);
// Members see each other's ids, so never use the session's id: anyone who has it can take over the session.
$id = $_SESSION['id'] ??= bin2hex(random_bytes(8));

if (isset($_POST['channel_name'])) {
    // Every visitor may enter this room; an application would check permissions here.
    $data = json_encode(['user_id' => $id, 'user_info' => ['name' => $name]]);
    $signed = "{$_POST['socket_id']}:{$_POST['channel_name']}:$data";
    $auth = KEY . ':' . hash_hmac('sha256', $signed, SECRET);
    header('Content-Type: application/json');
    exit(json_encode(['auth' => $auth, 'channel_data' => $data]));
}
if (isset($_POST['text'])) {
    publish('presence-room', 'said', ['name' => $name, 'text' => mb_substr($_POST['text'], 0, 1000)], $_POST['socket']);
    exit;
}
?>
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Room</title>
<p>You are <?= $name ?>; here: <span id="members"></span></p>
<ul id="lines"></ul>
<form>
    <input name="text" placeholder="Your message" autocomplete="off" autofocus>
    <button>Send</button>
</form>
<script src="/node_modules/pusher-js/dist/web/pusher.min.js"></script>
<script src="/node_modules/laravel-echo/dist/echo.iife.js"></script>
<script>
    // The script of laravel-echo 2 sets a module; earlier ones set the class.
    const echo = new (Echo.default ?? Echo)({
        broadcaster: 'reverb', key: '<?= KEY ?>', wsHost: location.hostname, wsPort: location.port,
        forceTLS: false, enabledTransports: ['ws'], authEndpoint: '/index.php',
    });
    const names = new Map(), form = document.querySelector('form');
    const show = () => document.querySelector('#members').textContent = [...names.keys()].join(', ');
    const add = (name, text) => {
        const line = document.createElement('li');
        line.textContent = `${name}: ${text}`;
        document.querySelector('#lines').append(line);
    };
    echo.join('room')
        .here((members) => { members.forEach(({name}) => names.set(name)); show(); })
        .joining(({name}) => { names.set(name); show(); })
        .leaving(({name}) => { names.delete(name); show(); })
        .listen('.said', ({name, text}) => add(name, text));
    form.onsubmit = (event) => {
        event.preventDefault();
        const text = form.text.value;
        form.reset();
        add('<?= $name ?>', text);
        fetch('/index.php', {method: 'POST', body: new URLSearchParams({text, socket: echo.socketId()})});
    };
</script>
