<?php
// The page of `make serve`: shows the PHP that responds, and its configuration.
$name = $_GET['name'] ?? 'world';
$opcache = function_exists('opcache_get_status') ? opcache_get_status(false) : false;
?>
<!doctype html>
<html lang="en">
<head>
    <meta charset="utf-8">
    <title>Hello from Howdah</title>
    <link rel="stylesheet" href="/style.css">
</head>
<body>
<h1>Hello, <?= htmlspecialchars($name) ?>!</h1>
<dl>
    <dt>PHP</dt>
    <dd><?= PHP_VERSION ?>, <?= PHP_ZTS ? 'thread-safe' : 'not thread-safe' ?></dd>
    <dt>Server</dt>
    <dd><?= htmlspecialchars($_SERVER['SERVER_SOFTWARE'] ?? '') ?>, process <?= getmypid() ?></dd>
    <dt>OPcache</dt>
    <dd><?= $opcache && $opcache['opcache_enabled'] ? 'on' : 'off' ?></dd>
    <dt>Path</dt>
    <dd><?= htmlspecialchars($_SERVER['REQUEST_URI'] ?? '') ?></dd>
</dl>
<form method="get">
    <label>Your name: <input name="name" value="<?= htmlspecialchars($name) ?>"></label>
    <button>Greet</button>
</form>
</body>
</html>
