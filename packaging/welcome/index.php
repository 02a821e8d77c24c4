<?php
// The page of a new installation: shows that the server works, and the next steps.
$settings = '/etc/howdah/howdah.toml';
?>
<!doctype html>
<html lang="en">
<head>
    <meta charset="utf-8">
    <meta name="robots" content="noindex">
    <title>Howdah is installed</title>
    <link rel="stylesheet" href="/style.css">
</head>
<body>
<h1>Howdah is installed and runs PHP <?= PHP_VERSION ?></h1>
<p>This page comes from <code><?= htmlspecialchars(__DIR__) ?></code>. To serve your application instead:</p>
<ol>
    <li>Set <code>root</code> in <code><?= $settings ?></code> to its public directory,
        or write a file for it in <code>/etc/howdah/conf.d</code>.</li>
    <li>Check the settings: <code>howdah check <?= $settings ?></code></li>
    <li>Apply them: <code>systemctl reload howdah</code>, or <code>howdah reload</code> without systemd.</li>
</ol>
<p>The guides are in <code>/usr/share/doc/howdah/guide</code>: <code>install.md</code>, <code>sites.md</code>,
    <code>from-nginx-php-fpm.md</code>. <code>howdah status</code> shows the running server.</p>
</body>
</html>
