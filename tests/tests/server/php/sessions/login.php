<?php
session_start();
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    if (($_POST['password'] ?? '') !== 'secret') {
        http_response_code(403);
        exit('no');
    }
    session_regenerate_id(true);
    $_SESSION['user'] = $_POST['user'];
    header('Location: /login.php', true, 303);
    exit;
}
if (isset($_GET['logout'])) {
    $_SESSION = [];
    session_destroy();
    exit('bye');
}
echo 'hello ', $_SESSION['user'] ?? 'stranger', ' ', $_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1;
