<?php
require_once __DIR__ . '/work.php'; $handle = function () { echo work((int) ($_GET['n'] ?? 0)); };
        while (frankenphp_handle_request($handle)) {}