<?php
// The application's side of the Pusher protocol, as in Laravel and pusher-php-server.
$id = 'app';
$key = 'the-key';
$secret = 'the secret';
$shared_secret = fn (string $channel) => hash('sha256', "$channel of the application's master key", true);

switch ($_GET['do'] ?? '') {
    case 'auth':
        // A browser's form, or fields of the query.
        $fields = $_POST + $_GET;
        $signed = "{$fields['socket_id']}:{$fields['channel_name']}";
        $data = $_GET['data'] ?? null;
        if ($data === null && str_starts_with($fields['channel_name'], 'presence-')) {
            $user = $_GET['user'] ?? 'anonymous';
            $data = json_encode(['user_id' => $user, 'user_info' => ['name' => strtoupper($user)]]);
        }
        $answer = $data === null ? [] : ['channel_data' => $data];
        if (str_starts_with($fields['channel_name'], 'private-encrypted-')) {
            $answer['shared_secret'] = base64_encode($shared_secret($fields['channel_name']));
        }
        $answer['auth'] = "$key:" . hash_hmac('sha256', $data === null ? $signed : "$signed:$data", $secret);
        header('Content-Type: application/json');
        echo json_encode($answer);
        break;
    case 'sign-in':
        $data = json_encode(['id' => $_GET['user']]);
        $auth = "$key:" . hash_hmac('sha256', "{$_GET['socket_id']}::user::$data", $secret);
        echo json_encode(['auth' => $auth, 'user_data' => $data]);
        break;
    case 'api':
        $body = file_get_contents('php://input');
        if (isset($_GET['encrypt'])) {
            $event = json_decode($body, true);
            $nonce = random_bytes(SODIUM_CRYPTO_SECRETBOX_NONCEBYTES);
            $box = sodium_crypto_secretbox($event['data'], $nonce, $shared_secret($event['channels'][0]));
            $event['data'] = json_encode(['nonce' => base64_encode($nonce), 'ciphertext' => base64_encode($box)]);
            $body = json_encode($event);
        }
        $method = $body === '' ? 'GET' : 'POST';
        parse_str($_GET['query'] ?? '', $query);
        $query += ['auth_key' => $key, 'auth_timestamp' => time() - ($_GET['age'] ?? 0), 'auth_version' => '1.0'];
        if ($body !== '') {
            $query['body_md5'] = md5($body);
        }
        ksort($query);
        $pairs = array_map(fn ($name) => "$name={$query[$name]}", array_keys($query));
        $path = "/apps/$id/{$_GET['path']}";
        $signature = hash_hmac('sha256', "$method\n$path\n" . implode('&', $pairs), $_GET['secret'] ?? $secret);
        $context = stream_context_create(['http' => [
            'method' => $method,
            'user_agent' => 'GuzzleHttp/7',
            'header' => ['Content-Type: application/json', 'X-Pusher-Library: pusher-http-php 7.2.6'],
            'content' => $body,
            'ignore_errors' => true,
        ]]);
        $address = "http://127.0.0.1:{$_SERVER['SERVER_PORT']}$path?" . http_build_query($query + ['auth_signature' => $signature]);
        $answer = file_get_contents($address, false, $context);
        echo json_encode(['status' => (int) explode(' ', $http_response_header[0])[1], 'body' => $answer]);
        break;
    case 'webhook':
        $body = file_get_contents('php://input');
        // Fails as many of the first attempts as the test has set.
        $failures = __DIR__ . '/failures';
        if (($left = (int) @file_get_contents($failures)) > 0) {
            file_put_contents($failures, $left - 1);
            http_response_code(500);
            break;
        }
        $valid = hash_equals(hash_hmac('sha256', $body, $secret), $_SERVER['HTTP_X_PUSHER_SIGNATURE'] ?? '');
        $is_app = $_SERVER['HTTP_X_PUSHER_KEY'] === $key;
        foreach (json_decode($body, true)['events'] as $event) {
            $line = ($valid && $is_app ? '' : 'FORGED ') . json_encode($event) . "\n";
            file_put_contents(__DIR__ . '/webhooks', $line, FILE_APPEND | LOCK_EX);
        }
        break;
}
