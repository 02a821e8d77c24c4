<?php
session_start();
$progress = $_SESSION['upload_progress_' . $_GET['key']] ?? null;
echo ($progress['done'] ?? false) ? 'done' : 'none', ' ', $progress['files'][0]['name'] ?? '', ' ',
    $_FILES['f']['size'] ?? '', ' ', session_status() === PHP_SESSION_ACTIVE ? 'active' : 'not active';
