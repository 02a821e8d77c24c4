<?php
// A small application in worker mode: notes in SQLite. Everything above the loop runs once per worker; the handler runs
// for each request, with fresh superglobals.

declare(strict_types=1);

$db = new PDO('sqlite:' . (getenv('NOTES_FILE') ?: sys_get_temp_dir() . '/howdah-notes.sqlite'));
$db->exec('CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)');
// Prepared once, executed by every request that this worker gets.
$add = $db->prepare('INSERT INTO note (text) VALUES (?)');
$all = $db->prepare('SELECT id, text FROM note ORDER BY id');

$routes = [
    'GET /' => static function (): void {
        header('Content-Type: text/plain; charset=utf-8');
        echo "GET /notes lists the notes, POST /notes with text=… adds one.\n";
    },
    'GET /notes' => static function () use ($all): void {
        $all->execute();
        header('Content-Type: application/json');
        echo json_encode($all->fetchAll(PDO::FETCH_ASSOC));
    },
    'POST /notes' => static function () use ($db, $add): void {
        $text = trim((string) ($_POST['text'] ?? ''));
        if ($text === '') {
            http_response_code(422);
            echo "text is missing\n";

            return;
        }
        $add->execute([$text]);
        http_response_code(201);
        header('Location: /notes');
        echo $db->lastInsertId(), "\n";
    },
];

$handle = static function () use ($routes): void {
    $route = $_SERVER['REQUEST_METHOD'] . ' ' . strtok($_SERVER['REQUEST_URI'], '?');
    if (!isset($routes[$route])) {
        http_response_code(404);
        echo "Nothing here\n";

        return;
    }
    // An exception ends this request with status 500; the worker and its booted state stay.
    $routes[$route]();
};

while (frankenphp_handle_request($handle)) {
    // Runs when the client has its whole response: release what must not grow here. Do not call gc_collect_cycles():
    // PHP collects cycles when there are many, and each call takes longer the more objects the worker keeps.
}
